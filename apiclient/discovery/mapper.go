package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

// defaultRefreshInterval limits the requests of a controller that retries an unknown kind: each look-up would read all
// documents.
const defaultRefreshInterval = 10 * time.Second

// Options are the options of a Mapper. The zero value has good defaults.
type Options struct {
	// RefreshInterval is the shortest time between the end of one read of the documents and the next read that a failed
	// look-up causes. A look-up therefore finds a new resource after this time at the latest. Zero means 10 seconds; a
	// negative value means no limit.
	RefreshInterval time.Duration
}

// Mapper maps names, kinds and categories to the resources of a server. It reads the server's documents at the first
// look-up, keeps them, and reads them again if a look-up finds nothing. Make one with New. It is safe for concurrent
// use, starts no goroutine and need not be closed. It corresponds to DeferredDiscoveryRESTMapper of client-go with its
// shortcut and category expanders, and to the dynamic RESTMapper of controller-runtime.
type Mapper struct {
	client   *apiclient.Client
	interval time.Duration

	// turn is a lock: it holds an element while a call reads the documents, with its own goroutine and context. It is a
	// channel because a wait for it must end with a context.
	turn   chan struct{}
	begun  atomic.Int64 // number of reads; written with turn
	latest atomic.Pointer[reading]
}

// reading is the result of a read of the documents. It is immutable.
type reading struct {
	number  int64
	at      time.Time // the end of the read
	catalog *catalog  // older than the read if it failed; nil if nothing is known
	err     error     // why the read failed
}

// New makes a mapper of a server's resources. It sends no request. It panics if c is nil. It corresponds to
// NewDeferredDiscoveryRESTMapper of client-go.
func New(c *apiclient.Client, o Options) *Mapper {
	if c == nil {
		panic("discovery: the Client of a Mapper is nil")
	}
	if o.RefreshInterval == 0 {
		o.RefreshInterval = defaultRefreshInterval
	}
	return &Mapper{client: c, interval: o.RefreshInterval, turn: make(chan struct{}, 1)}
}

// Lookup finds one resource. It is New and Mapper.Lookup, for a program with a single look-up. It corresponds to a
// RESTMapper of client-go for one mapping.
func Lookup(ctx context.Context, c *apiclient.Client, resource string) (api.Resource, error) {
	r, err := New(c, Options{}).Lookup(ctx, resource)
	return r.Resource, err
}

// Lookup finds a resource by a name that a person types: a plural name, a singular name, a short name or a kind
// ("deployments", "deployment", "deploy", "Deployment"). A group may follow ("deployments.apps"), or its beginning
// ("storageclass.storage"), or a version, with or without a group ("deployments.v1.apps", "pods.v1"). Case does not
// matter.
//
// If several resources have the name, the order is that of kubectl. Plural and singular names come before short names,
// and short names before kinds. Then the core group comes first, and the other groups follow in the server's order. In
// a group, the preferred version comes first. If several resources of one group and version are left, the one that can
// be read is the result. If there is not exactly one, the error is an *AmbiguousError.
//
// A look-up of a known name sends no request. If the name is unknown, the documents are read again, unless the last
// read was less than Options.RefreshInterval ago. If the name is still unknown, the error is an *UnknownResourceError.
// If the documents cannot be read, the error is a *DocumentError. Lookup blocks until the documents have been read or
// ctx ends. It corresponds to the resource builder's mappingFor, which kubectl calls with its arguments.
func (m *Mapper) Lookup(ctx context.Context, resource string) (APIResource, error) {
	ways, err := readings(resource)
	if err != nil {
		return APIResource{}, err
	}
	return m.one(ctx, "resource", resource, ways[0].resource, func(c *catalog) []APIResource { return c.named(ways) })
}

// ForKind finds the resource of a kind. The kind must be exact. Without a version, the group's preferred version is
// used. It blocks, and returns errors, as Lookup does. It corresponds to RESTMapping of apimachinery's RESTMapper.
func (m *Mapper) ForKind(ctx context.Context, kind schema.GroupVersionKind) (APIResource, error) {
	return m.one(ctx, "kind", dotted(kind.Kind, kind.Version, kind.Group), "", func(c *catalog) []APIResource { return c.ofKind(kind) })
}

// ForResource finds a resource by its plural name, which must be exact. Without a version, the group's preferred
// version is used. It blocks, and returns errors, as Lookup does. It corresponds to KindFor and ResourceFor of
// apimachinery's RESTMapper.
func (m *Mapper) ForResource(ctx context.Context, resource schema.GroupVersionResource) (APIResource, error) {
	asked := dotted(resource.Resource, resource.Version, resource.Group)
	return m.one(ctx, "resource", asked, "", func(c *catalog) []APIResource { return c.ofResource(resource) })
}

// dotted joins the parts that are not empty with dots.
func dotted(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ".")
}

// Category finds the resources of a category, such as "all", each in its preferred version, in the order of Lookup. If
// documents could not be read, there may be more resources, and the result comes with an *IncompleteError. If the read
// of these documents failed, it comes with the error of the read. Category blocks, and returns errors, as Lookup does.
// It corresponds to CategoryExpander of client-go.
func (m *Mapper) Category(ctx context.Context, category string) ([]APIResource, error) {
	in := func(c *catalog) []APIResource { return c.inCategory(category) }
	found, now, err := m.find(ctx, in, (*reading).incomplete)
	switch {
	case err != nil:
		return found, fmt.Errorf("look up category %s: %w", category, err)
	case len(found) == 0:
		return nil, &UnknownResourceError{What: "category", Name: category, Failed: now.failed()}
	default:
		return found, now.incomplete()
	}
}

// All returns every resource in every version of its group, in the order of Lookup. Those with Preferred name each
// resource once. If documents could not be read, the result comes with an *IncompleteError. If the last read failed, it
// comes with its error. All blocks for the first read. It also blocks for another read if something is missing and the
// last read was more than Options.RefreshInterval ago. It corresponds to ServerGroupsAndResources of client-go, and
// with Preferred to ServerPreferredResources.
func (m *Mapper) All(ctx context.Context) ([]APIResource, error) {
	found, now, err := m.find(ctx, func(c *catalog) []APIResource { return c.resources }, (*reading).incomplete)
	if err != nil {
		return slices.Clone(found), fmt.Errorf("list resources: %w", err)
	}
	return slices.Clone(found), now.incomplete()
}

// Failed returns the documents that the last read could not read. It does not block.
func (m *Mapper) Failed() []*DocumentError {
	return m.latest.Load().failed()
}

// Refresh reads the documents again, without regard to RefreshInterval. A server with aggregated discovery does not
// send unchanged documents again. If the read fails, the Mapper keeps its state. If some documents could not be read,
// the error is an *IncompleteError. Concurrent calls share one read that began after them. It blocks for the read. It
// corresponds to Reset of client-go's mapper.
func (m *Mapper) Refresh(ctx context.Context) error {
	before := m.begun.Load()
	now, err := m.read(ctx, func(r *reading) bool { return r == nil || r.number <= before })
	if err != nil {
		return fmt.Errorf("refresh resources: %w", err)
	}
	return now.incomplete()
}

// one finds one resource.
func (m *Mapper) one(ctx context.Context, what, asked, plural string, in func(*catalog) []APIResource) (APIResource, error) {
	found, now, err := m.find(ctx, in, func(*reading) error { return nil })
	switch {
	case err != nil:
		return APIResource{}, fmt.Errorf("look up %s: %w", asked, err)
	case len(found) > 0:
		return choose(asked, plural, found)
	default:
		return APIResource{}, &UnknownResourceError{
			What: what, Name: asked, Suggestion: now.catalog.nearest(asked), Failed: now.failed(),
		}
	}
}

// find searches the known resources. If it finds nothing, or not enough, it reads the documents again. If the read
// fails, it returns the error with the resources that it found before.
func (m *Mapper) find(ctx context.Context, in func(*catalog) []APIResource, enough func(*reading) error) ([]APIResource, *reading, error) {
	seen := m.latest.Load()
	var found []APIResource
	if seen != nil && seen.catalog != nil {
		if found = in(seen.catalog); len(found) > 0 && enough(seen) == nil {
			return found, seen, nil
		}
	}
	now, err := m.read(ctx, func(r *reading) bool {
		return r == seen && (r == nil || r.catalog == nil || time.Since(r.at) >= m.interval)
	})
	if err != nil {
		return found, seen, err
	}
	return in(now.catalog), now, nil
}

// read waits for turn and reads the documents, unless the latest reading makes this unnecessary. Its errors are those
// of the latest reading or of ctx.
func (m *Mapper) read(ctx context.Context, needed func(*reading) bool) (*reading, error) {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-m.turn }()
	last := m.latest.Load()
	if !needed(last) {
		return last, last.err
	}
	now := &reading{number: m.begun.Add(1)}
	f := fetch{client: m.client}
	if last != nil {
		f.known = last.catalog
	}
	now.catalog, now.err = f.all(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err() // not recorded, because it says nothing about the server; the next call reads itself
	}
	if now.err != nil {
		now.catalog = f.known
	}
	now.at = time.Now()
	m.latest.Store(now)
	return now, now.err
}

// incomplete returns why the results of a reading are incomplete, or nil.
func (r *reading) incomplete() error {
	switch {
	case r == nil:
		return nil
	case r.err != nil:
		return r.err
	case len(r.catalog.failed) > 0:
		return &IncompleteError{Failed: r.catalog.failed}
	default:
		return nil
	}
}

// failed returns the documents that are missing after a reading.
func (r *reading) failed() []*DocumentError {
	if r == nil {
		return nil
	}
	var out []*DocumentError
	var document *DocumentError
	if errors.As(r.err, &document) {
		out = append(out, document)
	}
	if r.catalog != nil {
		out = append(out, r.catalog.failed...)
	}
	return out
}
