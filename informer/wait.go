package informer

import (
	"context"
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/runstate"
)

// waiter is one call of WaitFor.
type waiter struct {
	version string
	reached chan struct{} // closed when the cache has reached the version
}

// WaitFor blocks until the cache has reached a version, by changes or by bookmarks. With the version that a write
// returned, it waits until the cache shows that write or a later state. With "0" it waits for the first list. It
// returns the error of ctx, or ErrStopped if the informer ends first. A version that is not a decimal number must be
// reached exactly, because it cannot be compared.
func (i *Informer[T]) WaitFor(ctx context.Context, version string) error {
	if i.held != nil {
		return i.held.WaitFor(ctx, version)
	}
	w := i.addWaiter(version)
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
func (i *Informer[T]) addWaiter(version string) *waiter {
	i.mu.Lock()
	defer i.mu.Unlock()
	if runstate.IsClosed(i.synced) && hasReached(i.ResourceVersion(), version) {
		return nil
	}
	w := &waiter{version: version, reached: make(chan struct{})}
	i.waiters = append(i.waiters, w)
	return w
}

func (i *Informer[T]) removeWaiter(w *waiter) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiters = slices.DeleteFunc(i.waiters, func(other *waiter) bool { return other == w })
}

// wakeWaiters is called under the lock with the version that the cache has reached.
func (i *Informer[T]) wakeWaiters(version string) {
	i.waiters = slices.DeleteFunc(i.waiters, func(w *waiter) bool {
		if !hasReached(version, w.version) {
			return false
		}
		close(w.reached)
		return true
	})
}

func hasReached(version, wanted string) bool {
	if wanted == "0" { // in the Kubernetes API, any version
		return true
	}
	order, ok := api.CompareVersions(version, wanted)
	return ok && order >= 0
}
