package disturb

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/signal"
)

// Injection is an active fault. All methods may be called on any goroutine.
type Injection struct {
	Fault faults.Fault
	// Version is the version of the server at a Compact or a Restore.
	Version uint64

	plan    *Plan
	removed chan struct{}

	mu        sync.Mutex // guards the fields below
	isRemoved bool
	matched   int
	applied   int
	seen      int
	random    *rand.Rand // nil without a probability
	changed   signal.Signal
}

// Seen returns the number of effects that reached a client: a failed answer, a missing frame, a 410 because of a
// compaction. It is zero if no request has met the fault yet.
func (i *Injection) Seen() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen
}

// Wait blocks until Seen is at least n. If ctx ends first, it returns the cause of ctx.
func (i *Injection) Wait(ctx context.Context, n int) error {
	for {
		i.mu.Lock()
		enough, changed := i.seen >= n, i.changed.Wait()
		i.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Remove ends the fault. Stalled answers and delayed frames continue. A second call does nothing.
func (i *Injection) Remove() {
	i.mu.Lock()
	if i.isRemoved {
		i.mu.Unlock()
		return
	}
	i.isRemoved = true
	close(i.removed)
	i.mu.Unlock()
	i.plan.drop(i)
}

// CountSeen counts one effect. With a nil injection it does nothing.
func (i *Injection) CountSeen() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen++
	i.changed.Fire()
}

// Claim counts one match and reports whether the fault affects it.
func (i *Injection) Claim() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.matched++
	if i.isRemoved || i.matched <= i.Fault.Skip || i.Fault.Times > 0 && i.applied >= i.Fault.Times {
		return false
	}
	if i.random != nil && i.random.Float64() >= i.Fault.Probability {
		return false
	}
	i.applied++
	return true
}

// Removed returns a channel that closes when the injection is removed.
func (i *Injection) Removed() <-chan struct{} { return i.removed }

// waitRemoved waits until the injection is removed and returns true, or returns false if ctx ends first.
func (i *Injection) waitRemoved(ctx context.Context) bool {
	select {
	case <-i.removed:
		return true
	case <-ctx.Done():
		return false
	}
}
