package controller

import (
	"context"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/workqueue"
)

// Gate delays the reconciles of keys, for instance until a cache contains the result of the last reconcile's writes.
// Workers call its methods, for different keys at the same time; the methods must not block. See Gated.
// controller-runtime has nothing like it.
type Gate[K comparable] interface {
	// Ready reports whether a reconcile of key may begin. If not, the gate must call again once, on any goroutine, when
	// it may; again does not block. Until then, the controller does not call Ready for that key.
	Ready(key K, again func()) bool
	// Begin returns the context of a reconcile of key. Through it, the gate learns about the writes of the reconcile.
	Begin(ctx context.Context, key K) context.Context
}

// Gated returns r with a gate in front. While the gate holds a key back, its worker takes another key, and no failure
// is counted. The key keeps its causes and its priority, and those of adds that come meanwhile. If a method of the gate
// panics, the key passes.
//
// Gated must be the outermost wrapper of the reconciler that New gets, or wrap another gate. Only then is the worker
// free. If something else calls Reconcile, the call blocks until the gate is ready or ctx ends.
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

// Reconcile serves callers that are not controllers: it blocks until the gate is ready.
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

// takeGates separates a reconciler from its gates, outermost first.
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

// heldKeys holds the keys that gates hold back.
type heldKeys[K comparable] struct {
	gates []Gate[K] // all of them must be ready

	mu   sync.Mutex // guards the field below, and the fields of the holds
	held map[K]*hold[K]
}

// hold is the state of a key whose gate was not ready. At most one worker has the key; only the call of again can come
// at any moment.
type hold[K comparable] struct {
	work    workqueue.Work[K] // what the worker got from the queue; the causes are copies
	waiting bool              // the key is held back
	over    bool              // the gate called again
}

// admit reports whether a key may be reconciled. If so, it adds the waiting causes to the work. If not, the key is
// added again when the gate allows it.
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

// ask calls Ready. If it panics, the key passes, because a reconcile that is too early is better than none.
func (c *Controller[K]) ask(g Gate[K], key K, again func()) (ready bool) {
	defer func() {
		if p := recover(); p != nil {
			c.counters.sourcePanics.Add(1)
			c.log.Error("gate panicked", zap.String("key", formatKey(key)),
				zap.Any("panic", p), zap.ByteString("stack", api.Recovered(p).Stack))
			ready = true
		}
	}()
	return g.Ready(key, again)
}

// mustWait reports whether a gate still holds the key back. If so, the work waits too. If not, the work gets everything
// that has waited.
func (c *Controller[K]) mustWait(w *workqueue.Work[K]) bool {
	c.gates.mu.Lock()
	defer c.gates.mu.Unlock()
	h := c.gates.held[w.Key]
	if h == nil {
		return false
	}
	h.join(w, c.o.Queue.MaxCauses)
	if h.over {
		delete(c.gates.held, w.Key)
		*w = h.work
	}
	return !h.over
}

// hold stores a key whose gate was not ready.
func (c *Controller[K]) hold(h *hold[K], w *workqueue.Work[K]) {
	c.gates.mu.Lock()
	defer c.gates.mu.Unlock()
	h.work = *w
	h.work.Causes = slices.Clone(w.Causes) // the worker's slice belongs to the queue
	h.waiting = true
	c.gates.held[w.Key] = h
	if h.over { // the gate called again before Ready returned
		c.addHeld(h)
	}
}

// release adds a key again when its gate calls again. If the key is not held yet, hold adds it.
func (c *Controller[K]) release(h *hold[K]) {
	c.gates.mu.Lock()
	defer c.gates.mu.Unlock()
	if h.waiting && !h.over {
		c.addHeld(h)
	}
	h.over = true
}

// addHeld adds a key that may be reconciled; its causes wait for the worker. The caller holds the lock.
func (c *Controller[K]) addHeld(h *hold[K]) {
	c.queue.AddWith(h.work.Key, workqueue.Item{Priority: h.work.Priority})
}

// join adds the causes of a later hand-out, up to a number of causes.
func (h *hold[K]) join(w *workqueue.Work[K], most int) {
	room := min(max(most-len(h.work.Causes), 0), len(w.Causes))
	h.work.Causes = append(h.work.Causes, w.Causes[:room]...)
	h.work.CausesOmitted += w.CausesOmitted + len(w.Causes) - room
	h.work.Priority = max(h.work.Priority, w.Priority)
	h.work.Ready = w.Ready
}

// find returns the waiting work of the key that has the given text, if a gate holds the key back.
func (h *heldKeys[K]) find(text string) (w workqueue.Work[K], found bool) {
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

// len returns the number of keys that are held back, without those that are in the queue again.
func (h *heldKeys[K]) len() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.held {
		if !held.over {
			n++
		}
	}
	return n
}
