package cachedclient

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
)

const (
	defaultOverlayLimit = 1000
	defaultOverlayAge   = 5 * time.Minute
)

// Options configure a client. With the zero value, reads use the cache only.
type Options struct {
	// Overlay makes reads show what this client has written, and hide what it has deleted, until the cache shows the
	// same. Without it, a read after a write may return the state from before the write.
	Overlay bool
	// OverlayLimit is the largest number of objects in the overlay; the oldest ones are removed first. Zero means 1000.
	OverlayLimit int
	// OverlayAge is the longest time that an object stays in the overlay if the cache does not catch up. Zero means 5
	// minutes.
	OverlayAge time.Duration

	// Informers lets a client that was made without an informer use a shared one of this factory. The client's first
	// read starts it, or its first write that a Gate or an overlay records. It runs until the factory stops. With nil,
	// a read starts no informer, because one read of a collection is no reason to keep all of it in memory.
	Informers *factory.Factory
	// ReadLive lets a client with neither an informer nor Informers read from the server. Without it, these reads fail.
	ReadLive bool
}

func (o Options) withDefaults() Options {
	if o.OverlayLimit <= 0 {
		o.OverlayLimit = defaultOverlayLimit
	}
	if o.OverlayAge <= 0 {
		o.OverlayAge = defaultOverlayAge
	}
	return o
}

// Partial reads objects of one resource from an informer's cache, and makes writes that name what they change: patches,
// applies and deletes. T may declare a part of the fields, because no method writes a whole object. Make one for each
// resource with NewPartial. It is safe for concurrent use.
//
// The Gate of a reconcile, if there is one, records the writes that use the reconcile's context.
// It corresponds to client.Client of controller-runtime, for one type that may be partial.
type Partial[T api.Object] struct {
	live    *apiclient.PartialClient[T]
	options Options
	source  *cacheSource[T]
}

// NewPartial returns a client that reads from an informer and writes with an API client of the same resource. The
// informer may be nil; then reads fail with ErrNotCached unless the options allow them. NewPartial panics if live is
// nil, or if the two resources differ.
func NewPartial[T api.Object](live *apiclient.PartialClient[T], i *informer.Informer[T], o Options) *Partial[T] {
	return newPartial(live, live, i, o, false)
}

// newPartial is NewPartial with two more arguments: the lister and watcher for an informer that a read starts, and
// whether T declares all fields that the objects may have.
func newPartial[T api.Object](live *apiclient.PartialClient[T], lw api.ListerWatcher[T], i *informer.Informer[T], o Options, whole bool) *Partial[T] {
	if live == nil {
		panic("cachedclient: the API client is nil; it is needed for writes")
	}
	o = o.withDefaults()
	p := &Partial[T]{live: live, options: o, source: &cacheSource[T]{listerWatcher: lw, options: o, whole: whole}}
	if i == nil {
		return p
	}
	if i.Resource() != live.Resource() {
		panic(fmt.Sprintf("cachedclient: the informer is of %s, but the API client is of %s", i.Resource(), live.Resource()))
	}
	p.source.use(i)
	return p
}

// Live returns the API client, for requests that need no cache: reads from the server and watches. Its writes are not
// recorded by a Gate or an overlay; see Wrote.
func (p *Partial[T]) Live() *apiclient.PartialClient[T] { return p.live }

// Informer returns the informer whose cache reads use, for example as the source of a controller. It is nil while the
// client has no informer; see Options.Informers.
func (p *Partial[T]) Informer() *informer.Informer[T] {
	if v := p.source.current(); v != nil {
		return v.informer
	}
	return nil
}

// Resource returns the resource of the objects.
func (p *Partial[T]) Resource() api.Resource { return p.live.Resource() }

// Get returns a copy of an object. It blocks until the cache has its first list. If ctx ends before that, the error is
// a *NotSyncedError. If the object does not exist, the error is apimachinery's NotFound. An informer of package
// referenced has other errors for objects that it does not cache. The key needs no namespace if the client is confined
// to one; for a cluster-scoped resource, the namespace is ignored. It corresponds to client.Reader.Get of
// controller-runtime.
func (p *Partial[T]) Get(ctx context.Context, key api.Key) (T, error) {
	object, err := p.Peek(ctx, key)
	if v := p.source.current(); err != nil || v == nil || v.copies() {
		return object, err
	}
	return api.Clone(object), nil
}

// Peek is Get without the copy. The object belongs to the cache and must not be changed.
// It corresponds to UnsafeDisableDeepCopy of controller-runtime.
func (p *Partial[T]) Peek(ctx context.Context, key api.Key) (T, error) {
	key = p.completeKey(key)
	var none T
	v, err := p.source.currentOrStarted()
	switch {
	case err != nil:
		return none, p.readError("get", key, err)
	case v == nil && p.options.ReadLive:
		return p.live.Get(ctx, key, metav1.GetOptions{})
	case v == nil:
		return none, p.readError("get", key, &NotCachedError{Resource: p.Resource()})
	}
	if err := v.waitReadable(ctx, key.Namespace); err != nil {
		return none, p.readError("get", key, err)
	}
	object, found := v.get(key)
	for !found && v.part != nil {
		if err := v.part.Await(ctx, key); err != nil {
			return none, p.readError("get", key, err)
		}
		// The last reference may have ended in the meantime; then Await says so.
		if object, found = v.get(key); v.overlay != nil {
			break // it may hide the object
		}
	}
	if !found {
		return none, p.readError("get", key, apierrors.NewNotFound(p.Resource().GroupResource(), key.Name))
	}
	return object, nil
}

// completeKey adds the namespace of the client to a key without one, and removes the namespace of a cluster-scoped
// object.
func (p *Partial[T]) completeKey(key api.Key) api.Key {
	switch {
	case !p.Resource().Namespaced:
		key.Namespace = ""
	case key.Namespace == "":
		key.Namespace = p.live.Namespace()
	}
	return key
}

// readError wraps the error of a read in the same way as apiclient does.
func (p *Partial[T]) readError(verb string, key api.Key, err error) error {
	return fmt.Errorf("%s %s %s: %w", verb, p.Resource(), api.FormatKey(key), err)
}
