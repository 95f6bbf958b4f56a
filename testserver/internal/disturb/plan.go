package disturb

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/signal"
)

// Plan has the active injections, oldest first.
type Plan struct {
	busy atomic.Bool // whether a fault is active; without faults a request costs only this load

	mu      sync.Mutex // guards the fields below
	active  []*Injection
	changed signal.Signal
}

// New returns an injection that is not active yet.
func (p *Plan) New(f faults.Fault) *Injection {
	i := &Injection{Fault: f, plan: p, removed: make(chan struct{})}
	if f.Probability > 0 {
		i.random = rand.New(rand.NewPCG(f.Seed, f.Seed))
	}
	return i
}

// Add activates an injection.
func (p *Plan) Add(i *Injection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = append(p.active, i)
	p.busy.Store(true)
	p.changed.Fire()
}

func (p *Plan) drop(i *Injection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active = slices.DeleteFunc(slices.Clone(p.active), func(o *Injection) bool { return o == i })
	p.busy.Store(len(p.active) > 0)
	p.changed.Fire()
}

// Busy reports whether a fault is active.
func (p *Plan) Busy() bool { return p.busy.Load() }

// Active returns the active injections. The slice never changes.
func (p *Plan) Active() []*Injection {
	if !p.busy.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.active)
}

// Changed returns a channel that closes when a fault is injected or removed.
func (p *Plan) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed.Wait()
}

// Happens returns the first injection with an effect of type E that does not depend on a request, or nil.
func Happens[E faults.Effect](p *Plan) (E, *Injection) {
	return find[E](p, func(faults.Match) bool { return true })
}

// Request returns the first injection with an effect of type E that affects a request, or nil.
func Request[E faults.Effect](p *Plan, r Target) (E, *Injection) {
	return find[E](p, r.Matches)
}

// OfFrame returns the first injection with an effect of type E that affects a frame or an item of a request's answer,
// or nil.
func OfFrame[E faults.Effect](p *Plan, r Target, f Frame) (E, *Injection) {
	return find[E](p, func(m faults.Match) bool { return r.matches(m) && f.matches(m) })
}

// Answer is Request for an effect that changes an answer: it counts the effect, and reports whether there is one.
func Answer[E faults.Effect](p *Plan, r Target) bool {
	_, i := Request[E](p, r)
	i.CountSeen()
	return i != nil
}

func find[E faults.Effect](p *Plan, matches func(faults.Match) bool) (E, *Injection) {
	for _, i := range p.Active() {
		if e, ok := i.Fault.Effect.(E); ok && matches(i.Fault.Match) && i.Claim() {
			return e, i
		}
	}
	var zero E
	return zero, nil
}

// CountExpired counts a 410 for the compactions that caused it.
func (p *Plan) CountExpired(version uint64) { countBefore[faults.Compact](p, version) }

// CountPast counts a read of a version that is older than one that the server had before a Restore.
func (p *Plan) CountPast(version uint64) { countBefore[faults.Restore](p, version) }

func countBefore[E faults.Effect](p *Plan, version uint64) {
	for _, i := range p.Active() {
		if _, ok := i.Fault.Effect.(E); ok && version < i.Version {
			i.CountSeen()
		}
	}
}
