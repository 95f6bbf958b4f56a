package expectations

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// DefaultTimeout is the time after which an expectation expires. An event that has not come by then will not come.
const DefaultTimeout = 5 * time.Minute

// Options configures Expectations. The zero value suits most users.
type Options struct {
	// Timeout is how long an expectation lasts. Zero means DefaultTimeout.
	Timeout time.Duration
}

// Expectations counts, for each key, the objects that are about to appear and those that are about to be deleted. Make
// one with New. It corresponds to UIDTrackingControllerExpectations of kube-controller-manager.
type Expectations[K comparable] struct {
	timeout time.Duration

	mu   sync.Mutex // guards the fields below
	keys map[K]*expected
}

// expected holds the open expectations of a key. A key without open expectations has no entry.
type expected struct {
	creations int
	deletions map[types.UID]struct{} // nil if no delete is expected
	since     time.Time
}

// Pending holds the open expectations of a key.
type Pending struct {
	Creations int
	Deletions []types.UID // in no particular order
	Since     time.Time   // time of Expect
}

// New returns Expectations without any key.
func New[K comparable](o Options) *Expectations[K] {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Expectations[K]{timeout: o.Timeout, keys: map[K]*expected{}}
}

// Expect records what the caller is about to do: create that many objects and delete those with the given UIDs. It
// replaces the earlier expectations of the key. Call it before the requests, because an event may come before the
// answer. If a request fails or is not sent, take it back with Created or Deleted.
func (e *Expectations[K]) Expect(key K, creations int, deletions ...types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
	e.raise(key, creations, deletions)
}

// Raise adds expectations to those of a key and restarts the timeout.
func (e *Expectations[K]) Raise(key K, creations int, deletions ...types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.raise(key, creations, deletions)
}

func (e *Expectations[K]) raise(key K, creations int, deletions []types.UID) {
	x := e.keys[key]
	if x == nil {
		x = &expected{}
		e.keys[key] = x
	}
	x.creations += max(0, creations)
	x.since = time.Now()
	for _, uid := range deletions {
		if x.deletions == nil {
			x.deletions = make(map[types.UID]struct{}, len(deletions))
		}
		x.deletions[uid] = struct{}{}
	}
	e.settle(key, x)
}

// Created observes n creations, or takes them back after failed requests.
func (e *Expectations[K]) Created(key K, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.keys[key]; x != nil {
		x.creations = max(0, x.creations-max(0, n))
		e.settle(key, x)
	}
}

// Deleted observes a delete, or takes it back after a failed request. Call it also for an object whose
// deletionTimestamp is set, and for an object that was replaced by another one with the same name.
func (e *Expectations[K]) Deleted(key K, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.keys[key]; x != nil {
		delete(x.deletions, uid)
		e.settle(key, x)
	}
}

// settle removes the entry of a key without open expectations.
func (e *Expectations[K]) settle(key K, x *expected) {
	if x.creations == 0 && len(x.deletions) == 0 {
		delete(e.keys, key)
	}
}

// Satisfied reports whether a reconcile of the key may trust its cache.
func (e *Expectations[K]) Satisfied(key K) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.keys[key]
	if x == nil {
		return true
	}
	if time.Since(x.since) < e.timeout {
		return false
	}
	delete(e.keys, key)
	return true
}

// Pending returns the open expectations of a key, and reports whether there are any. It is for logs and debug pages.
func (e *Expectations[K]) Pending(key K) (Pending, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.keys[key]
	if x == nil {
		return Pending{}, false
	}
	p := Pending{Creations: x.creations, Since: x.since}
	for uid := range x.deletions {
		p.Deletions = append(p.Deletions, uid)
	}
	return p, true
}

// Forget removes all expectations of a key. Call it when the object of the key was deleted.
func (e *Expectations[K]) Forget(key K) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
}

// Len returns the number of keys with open expectations.
func (e *Expectations[K]) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.keys)
}
