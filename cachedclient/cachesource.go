package cachedclient

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
)

// holding is where a client has its cache from: an informer that it was given, one that its first read starts, or none.
type cacheSource[T api.Object] struct {
	lists api.ListerWatcher[T]
	o     Options
	whole bool // T declares everything that an object may hold

	cache atomic.Pointer[cacheView[T]]
	mu    sync.Mutex // held while an informer is asked for, so that there is one
}

// held is an informer, and what a client knows beyond it.
type cacheView[T api.Object] struct {
	informer *informer.Informer[T]
	scope    scope[T]
	target   *cacheTarget[T] // of writes that a Gate waits for
	overlay  *overlay[T]     // nil unless there is one
}

// now returns the cache, or nil if there is none yet.
func (h *cacheSource[T]) now() *cacheView[T] { return h.cache.Load() }

func (h *cacheSource[T]) use(i *informer.Informer[T]) *cacheView[T] {
	c := &cacheView[T]{informer: i, scope: scopeOf(i), target: newCacheTarget(i)}
	c.scope.whole = h.whole
	if h.o.Overlay {
		c.overlay = newOverlay(i, h.o)
	}
	h.cache.Store(c)
	return c
}

// orStart returns the cache, or nil if there is none and none may be started.
func (h *cacheSource[T]) orStart() (*cacheView[T], error) {
	if c := h.now(); c != nil || h.o.Informers == nil {
		return c, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.now(); c != nil {
		return c, nil
	}
	share, err := informer.Shared(h.o.Informers, h.lists, informer.Options[T]{})
	if err != nil {
		return nil, fmt.Errorf("start an informer: %w", err)
	}
	return h.use(share.Informer), nil
}

// noting returns the cache in which a write is to be waited for, or nil if there is none. Where reads may start an
// informer, a write that a Gate or an overlay is to know of does, too: the one that the first read finds may run
// already, for others, and not have heard of the write.
func (h *cacheSource[T]) noting(ctx context.Context) *cacheView[T] {
	if c := h.now(); c != nil || !noted(ctx) && !h.o.Overlay {
		return c
	}
	c, _ := h.orStart() // reads say what is wrong
	return c
}

// get returns what reads show under a key.
func (h *cacheView[T]) get(key api.Key) (T, bool) {
	if h.overlay != nil {
		return h.overlay.get(key)
	}
	return h.informer.Snapshot().Get(key)
}

// look returns the cache, and what is to be shown differently.
func (h *cacheView[T]) look() (*cache.Snapshot[T], map[api.Key]shown[T]) {
	if h.overlay != nil {
		return h.overlay.over()
	}
	return h.informer.Snapshot(), nil
}

// readable waits until the cache can answer for a namespace. The empty one is all of them, or that of the informer.
func (h *cacheView[T]) readable(ctx context.Context, namespace string) error {
	if !h.scope.reaches(namespace) {
		return &NotCachedError{Resource: h.informer.Resource(), Namespace: namespace}
	}
	select {
	case <-h.informer.Synced():
		return nil
	default:
	}
	select {
	case <-h.informer.Synced():
		return nil
	case <-h.informer.Stopped():
		return &NotSyncedError{Status: h.informer.Status(), Err: informer.ErrStopped}
	case <-ctx.Done():
		return &NotSyncedError{Status: h.informer.Status(), Err: ctx.Err()}
	}
}
