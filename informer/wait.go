package informer

import (
	"context"
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/internal/runstate"
)

// waiter is one call of WaitFor or WaitForIn.
type waiter struct {
	version   string
	namespace *string       // that must have reached the version; nil for all
	reached   chan struct{} // closed when the cache has reached the version
}

// WaitFor blocks until the cache has reached a version, by changes or by bookmarks. With the version that a write
// returned, it waits until the cache shows that write or a later state. With "0" it waits for the first list. It
// returns the error of ctx, or ErrStopped if the informer ends first. A version that is not a decimal number must be
// reached exactly, because it cannot be compared.
func (i *Informer[T]) WaitFor(ctx context.Context, version string) error {
	if i.held != nil {
		return i.held.WaitFor(ctx, version)
	}
	return i.waitIn(ctx, nil, version)
}

// WaitForIn is WaitFor for the objects of one namespace. It differs only if the informer reads from scopes: it waits
// for the scopes that can have objects of the namespace, and WaitFor waits for all scopes. While there is no such
// scope, it waits. The namespace of cluster-scoped objects is empty.
func (i *Informer[T]) WaitForIn(ctx context.Context, namespace, version string) error {
	if i.scopes == nil {
		return i.WaitFor(ctx, version)
	}
	return i.waitIn(ctx, &namespace, version)
}

func (i *Informer[T]) waitIn(ctx context.Context, namespace *string, version string) error {
	w := i.addWaiter(namespace, version)
	if w == nil {
		return nil
	}
	defer i.removeWaiter(w)
	return i.await(ctx, w)
}

func (i *Informer[T]) await(ctx context.Context, w *waiter) (err error) {
	select {
	case <-w.reached:
	case <-ctx.Done():
		err = ctx.Err()
	case <-i.stopped:
		err = ErrStopped
	}
	if runstate.IsClosed(w.reached) { // also if the other event happened at the same time
		return nil
	}
	return err
}

// addWaiter returns nil if the cache has already reached the version.
func (i *Informer[T]) addWaiter(namespace *string, version string) *waiter {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := &waiter{version: version, namespace: namespace, reached: make(chan struct{})}
	if i.satisfies(i.indexer.Snapshot(), w, runstate.IsClosed(i.synced)) {
		return nil
	}
	i.waiters = append(i.waiters, w)
	return w
}

func (i *Informer[T]) removeWaiter(w *waiter) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiters = slices.DeleteFunc(i.waiters, func(other *waiter) bool { return other == w })
}

// wakeWaiters is called under the lock with the newest state of the cache.
func (i *Informer[T]) wakeWaiters(now *cache.Snapshot[T]) {
	synced := i.scopes == nil || runstate.IsClosed(i.synced) // without scopes, a batch comes after a list
	i.waiters = slices.DeleteFunc(i.waiters, func(w *waiter) bool {
		if !i.satisfies(now, w, synced) {
			return false
		}
		close(w.reached)
		return true
	})
}

func (i *Informer[T]) satisfies(now *cache.Snapshot[T], w *waiter, synced bool) bool {
	if w.namespace != nil {
		scopes := now.Scopes()
		return scopes != nil && scopes.Listed(*w.namespace) && hasReached(scopes.Version(*w.namespace), w.version)
	}
	return synced && hasReached(now.ResourceVersion(), w.version)
}

func hasReached(version, wanted string) bool {
	if wanted == "0" { // in the Kubernetes API, any version
		return true
	}
	order, ok := api.CompareVersions(version, wanted)
	return ok && order >= 0
}
