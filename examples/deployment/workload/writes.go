package workload

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leatproject/leat/api"
)

// patience is how long a reconcile waits for a cache. A server that sends no events must not stop everything.
const patience = 5 * time.Second

// Writes remembers, of one resource, the last version that the reconciles of each owner wrote. What a reconcile decides
// from a cache that does not show what the last one did is wrong more often than not, and where several objects are
// written together the server's check of versions does not find out. The zero value is ready.
type Writes struct {
	mu       sync.Mutex // guards the field below
	versions map[api.Key]string
}

// Waiter is an informer.
type Waiter interface {
	// WaitFor blocks until the cache holds a version or a newer one.
	WaitFor(ctx context.Context, version string) error
}

// Wrote remembers what a write of this owner's reconcile returned.
func (w *Writes) Wrote(owner api.Key, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions == nil {
		w.versions = map[api.Key]string{}
	}
	w.versions[owner] = version
}

// Await blocks until the cache shows what was written for the owner before, or for five seconds; then it goes on all the
// same. The error is that of ctx, or that the informer has stopped.
func (w *Writes) Await(ctx context.Context, owner api.Key, cache Waiter) error {
	w.mu.Lock()
	version, some := w.versions[owner]
	w.mu.Unlock()
	if !some {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := cache.WaitFor(waiting, version)
	if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	w.Forget(owner)
	return nil
}

// Forget remembers nothing of an owner any more.
func (w *Writes) Forget(owner api.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, owner)
}
