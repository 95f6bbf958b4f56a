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
)

const (
	defaultOverlayLimit = 1000
	defaultOverlayAge   = 5 * time.Minute
)

// Options of a client. The zero value is what most want: reads from the cache, and from nothing else.
type Options struct {
	// Overlay lets reads show what this client has written, and hide what it has deleted, until the cache catches up.
	// Without it a read after a write may show the state before.
	Overlay bool
	// OverlayLimit is how many objects are remembered for that at most; the oldest go first. Zero means 1000.
	OverlayLimit int
	// OverlayAge is how long an object is remembered at most, should the cache never catch up. Zero means 5 minutes.
	OverlayAge time.Duration

	// Informers lets a client without an informer share one of this factory, of what its API client reads, for as long
	// as the factory runs and from its first read on, or from the first write that a Gate or an overlay is told of. Nil
	// does not: to read a collection once is no wish to hold all of it.
	Informers *informer.Factory
	// ReadLive lets a client with neither an informer nor Informers read from the server, which it otherwise refuses
	// to.
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

// Partial reads objects of one resource from an informer's cache, and writes to the server in ways that name what they
// change. T may declare a part of what the objects hold; a partial T cannot be written back whole, because there is no
// method for it. Make one with NewPartial, once for each resource, at start; it is safe for concurrent use.
//
// What a write made with the context of a reconcile changed is noted by the reconcile's Gate, if it has one.
// It corresponds to client.Client of controller-runtime, for one type, and metadata or a part of it.
type Partial[T api.Object] struct {
	live *apiclient.PartialClient[T]
	o    Options
	held *cacheSource[T]
}

// NewPartial returns a client that reads from an informer and writes through an API client of the same resource. The
// informer may be nil, and reads then fail with ErrNotCached unless the options allow them: nothing is ever cached that
// nobody asked for. NewPartial panics when live is nil, and when the two are of different resources.
func NewPartial[T api.Object](live *apiclient.PartialClient[T], i *informer.Informer[T], o Options) *Partial[T] {
	return view(live, live, i, o, false)
}

// view also takes what an informer is made from, which is what live is a part of, and whether T is whole.
func view[T api.Object](live *apiclient.PartialClient[T], lists api.ListerWatcher[T], i *informer.Informer[T], o Options, whole bool) *Partial[T] {
	if live == nil {
		panic("cachedclient: an API client is needed to write with")
	}
	o = o.withDefaults()
	p := &Partial[T]{live: live, o: o, held: &cacheSource[T]{lists: lists, o: o, whole: whole}}
	if i == nil {
		return p
	}
	if i.Resource() != live.Resource() {
		panic(fmt.Sprintf("cachedclient: the informer is of %s, and the API client of %s", i.Resource(), live.Resource()))
	}
	p.held.use(i)
	return p
}

// Live returns the client that writes are sent with, for what need not be cached or cannot be noted: reads from the
// server, watches, deletions of whole collections.
func (p *Partial[T]) Live() *apiclient.PartialClient[T] { return p.live }

// Resource returns what is read and written.
func (p *Partial[T]) Resource() api.Resource { return p.live.Resource() }

// Get returns a copy of an object, which is the caller's to change. It blocks until the cache has its first list, or
// ctx ends, which is a *NotSyncedError. The error is apimachinery's NotFound if there is no such object. The namespace
// of a key may be left out where the client is confined to one; for a cluster-scoped resource it is ignored. It
// corresponds to client.Reader.Get of controller-runtime.
func (p *Partial[T]) Get(ctx context.Context, key api.Key) (T, error) {
	object, err := p.Peek(ctx, key)
	if err != nil || p.held.now() == nil {
		return object, err
	}
	return api.Clone(object), nil
}

// Peek is Get without the copy: the object is shared with the cache and with everybody else, and must not be changed.
// It corresponds to UnsafeDisableDeepCopy of controller-runtime.
func (p *Partial[T]) Peek(ctx context.Context, key api.Key) (T, error) {
	key = p.complete(key)
	var none T
	h, err := p.held.orStart()
	switch {
	case err != nil:
		return none, p.failed("get", key, err)
	case h == nil && p.o.ReadLive:
		return p.live.Get(ctx, key, metav1.GetOptions{})
	case h == nil:
		return none, p.failed("get", key, &NotCachedError{Resource: p.Resource()})
	}
	if err := h.readable(ctx, key.Namespace); err != nil {
		return none, p.failed("get", key, err)
	}
	object, found := h.get(key)
	if !found {
		return none, p.failed("get", key, apierrors.NewNotFound(p.Resource().GroupResource(), key.Name))
	}
	return object, nil
}

// complete settles the namespace of a key.
func (p *Partial[T]) complete(key api.Key) api.Key {
	switch {
	case !p.Resource().Namespaced:
		key.Namespace = ""
	case key.Namespace == "":
		key.Namespace = p.live.Namespace()
	}
	return key
}

// failed wraps the error of a read as the errors of live ones are.
func (p *Partial[T]) failed(verb string, key api.Key, err error) error {
	return fmt.Errorf("%s %s %s: %w", verb, p.Resource(), api.FormatKey(key), err)
}
