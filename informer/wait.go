package informer

import (
	"context"
	"slices"

	"github.com/leatproject/leat/api"
)

// waiter is somebody who waits for a version.
type waiter struct {
	version string
	reached chan struct{} // closed when the cache has reached the version
}

// WaitFor blocks until the cache holds version or a newer one, which it learns from changes and bookmarks alike. With a
// version that a write returned, it waits until the cache shows that write, or something later; with "0", for the first
// list. It returns the error of ctx, or ErrStopped when the informer ends first. A version that is no decimal number must
// be met exactly.
func (i *Informer[T]) WaitFor(ctx context.Context, version string) error {
	w, err := i.enqueueWaiter(version)
	if err != nil || w == nil {
		return err
	}
	defer i.forgetWaiter(w)
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
	if isClosed(w.reached) { // be it at the last moment
		return nil
	}
	return err
}

// enqueueWaiter returns nil if there is nothing to wait for.
func (i *Informer[T]) enqueueWaiter(version string) (*waiter, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case isClosed(i.synced) && hasReached(i.ResourceVersion(), version):
		return nil, nil
	case i.life == ended:
		return nil, ErrStopped
	}
	w := &waiter{version: version, reached: make(chan struct{})}
	i.waiters = append(i.waiters, w)
	return w, nil
}

func (i *Informer[T]) forgetWaiter(w *waiter) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiters = slices.DeleteFunc(i.waiters, func(other *waiter) bool { return other == w })
}

// wakeWaiters is called, under the lock, with the version that the cache has reached.
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
