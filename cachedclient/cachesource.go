package cachedclient

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
)

// cacheSource gives a client its cache: the one of an informer that the client was made with, or of one that the first
// read starts, or no cache.
type cacheSource[T api.Object] struct {
	listerWatcher api.ListerWatcher[T] // of an informer that is started
	options       Options
	whole         bool // T declares all fields that the objects may have

	view atomic.Pointer[cacheView[T]] // nil while there is no cache
	mu   sync.Mutex                   // held while an informer is started, so that only one is
}

// cacheView is an informer's cache with what a client adds to it.
type cacheView[T api.Object] struct {
	informer *informer.Informer[T]
	scope    scope[T]
	target   *cacheTarget[T] // tells a Gate which writes the cache shows
	overlay  *overlay[T]     // nil without Options.Overlay
	scopes   scopesNow       // nil unless the informer reads from scopes
	part     partOfAll       // nil if the informer has all objects of its collection
	parsed   sync.Map        // api.Selector to scope[T], if it does
}

// partOfAll is the ListerWatcher of an informer that has only a part of its collection; see package scale/referenced.
type partOfAll interface {
	// Await blocks until it is known whether the cache will have an object, and until it has it. The error says why it
	// will not, which may be NotFound.
	Await(ctx context.Context, key api.Key) error
}

// current returns the cache, or nil before there is one.
func (s *cacheSource[T]) current() *cacheView[T] { return s.view.Load() }

// use makes an informer's cache the current one.
func (s *cacheSource[T]) use(i *informer.Informer[T]) *cacheView[T] {
	v := &cacheView[T]{informer: i, scope: scopeOf(i), target: newCacheTarget(i)}
	v.scope.whole = s.whole
	v.scopes, _ = api.As[scopesNow](i.ListerWatcher())
	v.part, _ = api.As[partOfAll](i.ListerWatcher())
	if s.options.Overlay {
		v.overlay = newOverlay(i, s.options)
	}
	s.view.Store(v)
	return v
}

// currentOrStarted returns the cache, and starts an informer if there is no cache and the options allow it. Otherwise
// it returns nil.
func (s *cacheSource[T]) currentOrStarted() (*cacheView[T], error) {
	if v := s.current(); v != nil || s.options.Informers == nil {
		return v, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.current(); v != nil {
		return v, nil
	}
	share, err := factory.Shared(s.options.Informers, s.listerWatcher, informer.Options[T]{})
	if err != nil {
		return nil, fmt.Errorf("start an informer: %w", err)
	}
	return s.use(share.Informer), nil
}

// forWrite returns the cache that will show a write, or nil without a cache. A write that a Gate or an overlay
// records starts an informer, as a read does. Otherwise the first read could find a shared informer that other clients
// started, and whose cache does not have the write yet.
func (s *cacheSource[T]) forWrite(ctx context.Context) *cacheView[T] {
	if v := s.current(); v != nil || !hasGate(ctx) && !s.options.Overlay {
		return v
	}
	v, _ := s.currentOrStarted() // the next read returns the error
	return v
}

// get returns the object that reads show under a key.
func (v *cacheView[T]) get(key api.Key) (T, bool) {
	if v.overlay != nil {
		return v.overlay.get(key)
	}
	return v.informer.Snapshot().Get(key)
}

// copies reports whether reads return copies already: the informer keeps packed objects, and no overlay has others.
func (v *cacheView[T]) copies() bool { return v.overlay == nil && v.informer.Snapshot().Copies() }

// snapshot returns the cache, and the objects that reads show instead of those in it.
func (v *cacheView[T]) snapshot() (*cache.Snapshot[T], map[api.Key]override[T]) {
	if v.overlay != nil {
		return v.overlay.snapshot()
	}
	return v.informer.Snapshot(), nil
}

// waitReadable blocks until the cache has its first list. It fails if the cache does not have the namespace. The empty
// namespace means all that the cache has.
func (v *cacheView[T]) waitReadable(ctx context.Context, namespace string) error {
	if !v.includesNamespace(namespace) {
		return &NotCachedError{Resource: v.informer.Resource(), Namespace: namespace}
	}
	if namespace != "" && v.scopes != nil {
		return v.waitScopes(ctx, namespace)
	}
	select {
	case <-v.informer.Synced():
		return nil
	default:
	}
	select {
	case <-v.informer.Synced():
		return nil
	case <-v.informer.Stopped():
		return &NotSyncedError{Status: v.informer.Status(), Err: informer.ErrStopped}
	case <-ctx.Done():
		return &NotSyncedError{Status: v.informer.Status(), Err: ctx.Err()}
	}
}
