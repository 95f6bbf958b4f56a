package informer

import (
	"context"
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/internal/runstate"
)

// waiter is one call of waitUntil.
type waiter struct {
	reached func() bool
	done    chan struct{} // closed when reached has returned true
}

// WaitFor blocks until the cache has reached a version, by changes or by bookmarks. With the version that a write
// returned, it waits until the cache shows that write or a later state. With "0" it waits for the first list. It
// returns the error of ctx, or ErrStopped if the informer ends first. A version that is not a decimal number must be
// reached exactly, because it cannot be compared.
func (i *Informer[T]) WaitFor(ctx context.Context, version string) error {
	return i.pipeline.waitFor(ctx, version)
}

func (p *pipeline[T]) waitFor(ctx context.Context, version string) error {
	return p.waitUntil(ctx, func() bool {
		return runstate.IsClosed(p.events.synced) && hasReached(p.indexer.ResourceVersion(), version)
	})
}

// WaitUntil blocks until a snapshot of the cache satisfies a condition. The condition is called with each snapshot,
// even if only its version or its note is new, and the next change waits for it. It runs under the informer's lock, so
// it must return at once and must not call the informer; a panic ends the process. WaitUntil returns the error of ctx,
// or ErrStopped if the informer ends first.
func (i *Informer[T]) WaitUntil(ctx context.Context, condition func(*cache.Snapshot[T]) bool) error {
	return i.pipeline.waitUntil(ctx, func() bool { return condition(i.Snapshot()) })
}

func (p *pipeline[T]) waitUntil(ctx context.Context, reached func() bool) error {
	w := p.addWaiter(reached)
	if w == nil {
		return nil
	}
	defer p.removeWaiter(w)
	return p.await(ctx, w)
}

func (p *pipeline[T]) await(ctx context.Context, w *waiter) (err error) {
	select {
	case <-w.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-p.events.stopped:
		err = ErrStopped
	}
	if runstate.IsClosed(w.done) { // even if the other event happened at the same time
		return nil
	}
	return err
}

// addWaiter returns nil if the condition is true already.
func (p *pipeline[T]) addWaiter(reached func() bool) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reached() {
		return nil
	}
	w := &waiter{reached, make(chan struct{})}
	p.waiters = append(p.waiters, w)
	return w
}

func (p *pipeline[T]) removeWaiter(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters = slices.DeleteFunc(p.waiters, func(other *waiter) bool { return other == w })
}

// wakeWaiters is called under the lock after each batch.
func (p *pipeline[T]) wakeWaiters() {
	p.waiters = slices.DeleteFunc(p.waiters, func(w *waiter) bool {
		if !w.reached() {
			return false
		}
		close(w.done)
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
