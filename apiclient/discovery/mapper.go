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

// defaultRefreshInterval keeps a controller that retries a kind which is not there from asking for everything each
// time.
const defaultRefreshInterval = 10 * time.Second

// Options shape a Mapper. The zero value is a good one.
type Options struct {
	// RefreshInterval is the least time between the end of one reading of the server's documents and the beginning of
	// another that is due to a look-up which found nothing. A resource that is installed later is so found after this
	// time at the latest. Zero means 10 seconds, a negative value no limit.
	RefreshInterval time.Duration
}

// Mapper knows what a server's resources are called: it turns what people type, kinds and categories into resources. It
// reads the server's documents when it is first asked something, keeps them, and reads them again when a look-up finds
// nothing. Make one with New. It is safe for concurrent use, starts no goroutine, and needs no closing. It corresponds
// to DeferredDiscoveryRESTMapper of client-go with its shortcut and category expanders, and to the dynamic RESTMapper
// of controller-runtime.
type Mapper struct {
	client   *apiclient.Client
	interval time.Duration

	// turn holds an element while somebody reads the documents, on his own goroutine and with his own context. It is a
	// channel because waiting for it must end with a context.
	turn   chan struct{}
	begun  atomic.Int64 // readings; written by who has the turn
	latest atomic.Pointer[reading]
}

// reading is how an attempt to read the documents came out. It is immutable.
type reading struct {
	number  int64
	at      time.Time // when it was over
	catalog *catalog  // what is known after it, which is older than it if it failed; nil if it is nothing
	err     error     // why it failed
}

// New makes a mapper of a server's resources. It makes no request. It panics when c is nil.
// It corresponds to NewDeferredDiscoveryRESTMapper of client-go.
func New(c *apiclient.Client, o Options) *Mapper {
	if c == nil {
		panic("discovery: a mapper needs a client")
	}
	if o.RefreshInterval == 0 {
		o.RefreshInterval = defaultRefreshInterval
	}
	return &Mapper{client: c, interval: o.RefreshInterval, turn: make(chan struct{}, 1)}
}

// Lookup finds a resource for somebody who looks once. It is New and Mapper.Lookup.
// It corresponds to asking a RESTMapper of client-go for one mapping.
func Lookup(ctx context.Context, c *apiclient.Client, resource string) (api.Resource, error) {
	r, err := New(c, Options{}).Lookup(ctx, resource)
	return r.Resource, err
}

// Lookup finds a resource by what a person types: a plural name, a singular name, a short name or a kind
// ("deployments", "deployment", "deploy", "Deployment"), alone, with a group ("deployments.apps", or the beginning of
// its name: "storageclass.storage") or with a version and a group ("deployments.v1.apps", "pods.v1"). Case does not
// matter.
//
// Where several resources have the name, plural and singular names come before short names, and those before kinds;
// then the core group comes first, the other groups in the server's order, and in a group the preferred version, as in
// kubectl. If that leaves several resources of one group and version, and only one of them can be read, it is that;
// else the error is an *AmbiguousError.
//
// What was found before costs no request. If nothing has the name the documents are read again, unless that happened
// less than Options.RefreshInterval ago; if still nothing has it, the error is an *UnknownResourceError. Where the
// documents cannot be read the error is a *DocumentError. It blocks until what it needs has been read, or ctx ends. It
// corresponds to the resource builder's mappingFor, which is what kubectl does with its arguments.
func (m *Mapper) Lookup(ctx context.Context, resource string) (APIResource, error) {
	ways, err := readings(resource)
	if err != nil {
		return APIResource{}, err
	}
	return m.one(ctx, "resource", resource, ways[0].resource, func(c *catalog) []APIResource { return c.named(ways) })
}

// ForKind finds the resource whose objects are of a kind, spelt exactly. Without a version it is in the group's
// preferred one. It errs and blocks as Lookup does. It corresponds to RESTMapping of apimachinery's RESTMapper.
func (m *Mapper) ForKind(ctx context.Context, kind schema.GroupVersionKind) (APIResource, error) {
	return m.one(ctx, "kind", dotted(kind.Kind, kind.Version, kind.Group), "", func(c *catalog) []APIResource { return c.ofKind(kind) })
}

// ForResource finds a resource by its plural name, spelt exactly. Without a version it is in the group's preferred one.
// It errs and blocks as Lookup does. It corresponds to KindFor and ResourceFor of apimachinery's RESTMapper.
func (m *Mapper) ForResource(ctx context.Context, resource schema.GroupVersionResource) (APIResource, error) {
	asked := dotted(resource.Resource, resource.Version, resource.Group)
	return m.one(ctx, "resource", asked, "", func(c *catalog) []APIResource { return c.ofResource(resource) })
}

// dotted is how a person would write it.
func dotted(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ".")
}

// Category finds the resources of a category, such as "all", each in its preferred version, in the order of priority of
// Lookup. They come with an *IncompleteError if there may be more in documents that could not be read, and with another
// error if those documents could not even be asked for again. It errs and blocks as Lookup does.
// It corresponds to CategoryExpander of client-go.
func (m *Mapper) Category(ctx context.Context, category string) ([]APIResource, error) {
	in := func(c *catalog) []APIResource { return c.inCategory(category) }
	found, now, err := m.find(ctx, in, (*reading).complaint)
	switch {
	case err != nil:
		return found, fmt.Errorf("look up category %s: %w", category, err)
	case len(found) == 0:
		return nil, &UnknownResourceError{What: "category", Name: category, Failed: now.failed()}
	default:
		return found, now.complaint()
	}
}

// All returns every resource in every version of its group, in the order of priority of Lookup; those that are
// Preferred name each resource once. They come with an *IncompleteError if documents could not be read, and with
// another error if the last attempt to read them failed as a whole. It blocks for the first reading, and for another
// one if something is missing and the last was longer than Options.RefreshInterval ago. It corresponds to
// ServerGroupsAndResources of client-go, and, of those preferred, to ServerPreferredResources.
func (m *Mapper) All(ctx context.Context) ([]APIResource, error) {
	found, now, err := m.find(ctx, func(c *catalog) []APIResource { return c.resources }, (*reading).complaint)
	if err != nil {
		return slices.Clone(found), fmt.Errorf("list resources: %w", err)
	}
	return slices.Clone(found), now.complaint()
}

// Failed returns the documents that the mapper could not read when it last tried. It does not block.
func (m *Mapper) Failed() []*DocumentError {
	return m.latest.Load().failed()
}

// Refresh reads the documents anew, whenever they were last read; a server with aggregated discovery only says so if
// nothing changed. If that fails, all stays as it was. The error is an *IncompleteError if some documents could not be
// read. Calls at the same time share one reading that began after them. It blocks for the reading.
// It corresponds to Reset of client-go's mapper.
func (m *Mapper) Refresh(ctx context.Context) error {
	before := m.begun.Load()
	now, err := m.read(ctx, func(r *reading) bool { return r == nil || r.number <= before })
	if err != nil {
		return fmt.Errorf("refresh resources: %w", err)
	}
	return now.complaint()
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

// find looks in what is known, and reads the documents again if nothing is found there, or what is found is not enough.
// An error is why that could not be done; it may come with what was found before.
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

// read waits for its turn, and reads the documents if the latest reading leaves need for that. Its errors are those of
// the latest reading, or of ctx.
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
		return nil, ctx.Err() // that says nothing about the server: who waits takes a turn of his own
	}
	if now.err != nil {
		now.catalog = f.known
	}
	now.at = time.Now()
	m.latest.Store(now)
	return now, now.err
}

// complaint is what is wrong with results of a reading.
func (r *reading) complaint() error {
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

// failed are the documents that are missing after a reading.
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
