package expectations

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// DefaultTimeout is after how long an expectation is given up: an event that did not come in that time will not come.
const DefaultTimeout = 5 * time.Minute

// Options of Expectations. The zero value is what most want.
type Options struct {
	// Timeout is how long an expectation holds. Zero means DefaultTimeout.
	Timeout time.Duration
}

// Expectations are, for each key, how many objects are about to appear and which are about to go. Make one with New.
// It corresponds to UIDTrackingControllerExpectations of kube-controller-manager.
type Expectations[K comparable] struct {
	timeout time.Duration

	mu   sync.Mutex // guards the fields below
	keys map[K]*expected
}

// expected is what a key waits for. One that waits for nothing is not kept.
type expected struct {
	creations int
	deletions map[types.UID]struct{} // nil for none
	since     time.Time
}

// Pending is what a key still waits for.
type Pending struct {
	Creations int
	Deletions []types.UID // in no order
	Since     time.Time   // when it was expected
}

// New returns expectations of nothing.
func New[K comparable](o Options) *Expectations[K] {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Expectations[K]{timeout: o.Timeout, keys: map[K]*expected{}}
}

// Expect says what the caller is about to do: create that many objects and delete those. It replaces what was expected of
// the key before, which the caller has found satisfied. It must be called before the server is asked, for the event may
// come before the answer. Whatever then fails, or is not tried, has to be taken back with Created or Deleted.
func (e *Expectations[K]) Expect(key K, creations int, deletions ...types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
	e.raise(key, creations, deletions)
}

// Raise expects more of a key than is expected already, and starts its time-out anew.
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

// Created observes n creations, or takes them back: a creation that failed will not be observed.
func (e *Expectations[K]) Created(key K, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.keys[key]; x != nil {
		x.creations = max(0, x.creations-max(0, n))
		e.settle(key, x)
	}
}

// Deleted observes a deletion, or takes it back. An object whose deletionTimestamp is set counts as deleted, and so does
// one that another of its name has replaced.
func (e *Expectations[K]) Deleted(key K, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.keys[key]; x != nil {
		delete(x.deletions, uid)
		e.settle(key, x)
	}
}

// settle forgets what waits for nothing.
func (e *Expectations[K]) settle(key K, x *expected) {
	if x.creations == 0 && len(x.deletions) == 0 {
		delete(e.keys, key)
	}
}

// Satisfied tells whether a reconcile of the key may act on what its cache shows.
func (e *Expectations[K]) Satisfied(key K) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.satisfied(key)
}

// SatisfiedAll tells whether all keys are satisfied: a reconcile that waits for things of several kinds gives each a key of
// its own, and must not act before the last of them is there.
func (e *Expectations[K]) SatisfiedAll(keys ...K) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, key := range keys {
		if !e.satisfied(key) {
			return false
		}
	}
	return true
}

func (e *Expectations[K]) satisfied(key K) bool {
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

// Pending returns what a key still waits for, and false if that is nothing. It is for logs and pages.
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

// Forget expects nothing of a key any more, as must be said when the object that it stands for is gone.
func (e *Expectations[K]) Forget(key K) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
}

// Len is the number of keys of which something is expected.
func (e *Expectations[K]) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.keys)
}
