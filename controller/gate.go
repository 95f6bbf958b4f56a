package controller

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/leatproject/leat/workqueue"
)

// Gate holds back the reconciles of keys for which it is too early, for instance because a cache has not caught up with
// what the last reconcile of the key wrote. Its methods are called on workers, for different keys at once, and must not
// block. See Gated.
// Nothing in controller-runtime corresponds to it.
type Gate[K comparable] interface {
	// Ready says whether a reconcile of key may begin. If not, again is called once, on any goroutine, when it may; it
	// does not block. Until then the gate is not asked about that key again.
	Ready(key K, again func()) bool
	// Begin returns the context of a reconcile of key, by which the gate learns what the reconcile writes.
	Begin(ctx context.Context, key K) context.Context
}

// Gated returns r with a gate before it. A key that the gate holds back is not reconciled: its worker takes another one,
// no failure is counted, and its causes and its priority wait with it, together with those of adds that come meanwhile.
// A gate that panics when it is asked lets the key pass.
//
// The gate has to be the outermost wrapper of what New is given, or around another gate, for a worker to be free
// meanwhile; called by something else, Reconcile waits for the gate until ctx ends.
func Gated[K comparable](r Reconciler[K], g Gate[K]) Reconciler[K] {
	if r == nil || g == nil {
		panic("controller: Gated needs a reconciler and a gate")
	}
	return &gated[K]{inner: r, gate: g}
}

type gated[K comparable] struct {
	inner Reconciler[K]
	gate  Gate[K]
}

// Reconcile is for those who are no controller.
func (r *gated[K]) Reconcile(ctx context.Context, key K) (Result, error) {
	for {
		open := make(chan struct{})
		if r.gate.Ready(key, sync.OnceFunc(func() { close(open) })) {
			return r.inner.Reconcile(r.gate.Begin(ctx, key), key)
		}
		select {
		case <-open:
		case <-ctx.Done():
			return Result{}, ctx.Err()
		}
	}
}

// takeGates separates a reconciler from the gates before it, outermost first.
func takeGates[K comparable](r Reconciler[K]) (Reconciler[K], []Gate[K]) {
	var gates []Gate[K]
	for {
		g, ok := r.(*gated[K])
		if !ok {
			return r, gates
		}
		r, gates = g.inner, append(gates, g.gate)
	}
}

// gatehouse is where the keys are that gates hold back.
type gatehouse[K comparable] struct {
	gates []Gate[K] // all of them must be ready

	mu   sync.Mutex // guards the field below, and those of the holds
	held map[K]*hold[K]
}

// hold is what is kept of a key that a gate was not ready for. A key is in the hands of one worker at most, so that only
// the call of again may come at any moment.
type hold[K comparable] struct {
	work    workqueue.Work[K] // what the workers were told; the causes are copies
	waiting bool              // it is among those that are held
	over    bool              // again was called
}

// admit says whether a key may be reconciled; what waited with it is joined to the work. If it may not, the key is added
// again when it may.
func (c *Controller[K]) admit(w *workqueue.Work[K]) bool {
	if len(c.gates.gates) == 0 {
		return true
	}
	if c.mustWait(w) {
		return false
	}
	h := new(hold[K])
	for _, g := range c.gates.gates {
		if !c.ask(g, w.Key, func() { c.release(h) }) {
			c.hold(h, w)
			return false
		}
	}
	return true
}

// ask contains a panic of the gate, which counts as ready: too early is better than never.
func (c *Controller[K]) ask(g Gate[K], key K, again func()) (ready bool) {
	defer func() {
		if p := recover(); p != nil {
			c.counters.sourcePanics.Add(1)
			c.log.Error("gate panicked", zap.String("key", formatKey(key)),
				zap.Any("panic", p), zap.ByteString("stack", recovered(p).Stack))
			ready = true
		}
	}()
	return g.Ready(key, again)
}

// mustWait says whether a gate still holds the key back; then what the worker was told waits, too. If the gate does not
// any more, the worker is told what has waited.
func (c *Controller[K]) mustWait(w *workqueue.Work[K]) bool {
	c.gates.mu.Lock()
	defer c.gates.mu.Unlock()
	h := c.gates.held[w.Key]
	if h == nil {
		return false
	}
	h.join(w, c.o.MaxCauses)
	if h.over {
		delete(c.gates.held, w.Key)
		*w = h.work
	}
	return !h.over
}

// hold keeps a key for which a gate was not ready.
func (c *Controller[K]) hold(h *hold[K], w *workqueue.Work[K]) {
	c.gates.mu.Lock()
	defer c.gates.mu.Unlock()
	h.work = *w
	h.work.Causes = slices.Clone(w.Causes) // the worker's belong to the queue
	h.waiting = true
	c.gates.held[w.Key] = h
	if h.over { // already, in the middle of the question
		c.addHeld(h)
	}
}

// release lets a key be reconciled. If the gate was too quick for the key to be held, it is added when it is.
func (c *Controller[K]) release(h *hold[K]) {
	c.gates.mu.Lock()
	defer c.gates.mu.Unlock()
	if h.waiting && !h.over {
		c.addHeld(h)
	}
	h.over = true
}

// addHeld adds a key whose time has come; its causes are waiting for the worker. The lock is held.
func (c *Controller[K]) addHeld(h *hold[K]) {
	c.queue.AddWith(h.work.Key, workqueue.Item{Priority: h.work.Priority})
}

// join adds what another worker was told, up to a number of causes.
func (h *hold[K]) join(w *workqueue.Work[K], most int) {
	room := min(max(most-len(h.work.Causes), 0), len(w.Causes))
	h.work.Causes = append(h.work.Causes, w.Causes[:room]...)
	h.work.CausesOmitted += w.CausesOmitted + len(w.Causes) - room
	h.work.Priority = max(h.work.Priority, w.Priority)
	h.work.Ready = w.Ready
}

// find returns what waits with the key that is written so, if a gate holds it back.
func (h *gatehouse[K]) find(text string) (w workqueue.Work[K], found bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, held := range h.held {
		if formatKey(key) == text {
			w = held.work
			w.Causes = slices.Clone(w.Causes)
			return w, true
		}
	}
	return w, false
}

// len counts the keys that are held back, not those that a worker will take.
func (h *gatehouse[K]) len() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.held {
		if !held.over {
			n++
		}
	}
	return n
}
