package controller

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/workqueue"
)

func (c *Controller[K]) startWorkers(ctx context.Context) {
	places := c.places()
	c.log.Info("workers started", zap.Int("count", len(places)))
	for i := range places {
		c.startWorker(ctx, &places[i])
	}
}

// places returns the place of each worker. It is empty before Run.
func (c *Controller[K]) places() []atomic.Pointer[attempt[K]] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// startWorker starts one worker. If a reconcile ends the worker's goroutine, it starts another one.
func (c *Controller[K]) startWorker(ctx context.Context, place *atomic.Pointer[attempt[K]]) {
	c.active.Go(func() {
		vanished := true
		defer func() {
			if vanished {
				c.startWorker(ctx, place)
			}
		}()
		c.work(ctx, place)
		vanished = false
	})
}

// work reconciles one key after the other until ctx ends. The worker's place shows the current attempt.
func (c *Controller[K]) work(ctx context.Context, place *atomic.Pointer[attempt[K]]) {
	a := new(ended[K])
	for {
		w, err := c.queue.Get(ctx)
		if err != nil {
			return
		}
		if c.admit(&w) {
			c.process(ctx, w, place, a)
		} else {
			c.queue.Done(w.Key)
		}
	}
}

// process reconciles one key. It also handles a reconciler that panics or ends the goroutine.
func (c *Controller[K]) process(ctx context.Context, w workqueue.Work[K], place *atomic.Pointer[attempt[K]], a *ended[K]) {
	c.counters.active.Add(1)
	*a = ended[K]{attempt: c.newAttempt(w), err: errGoexit}
	place.Store(a.attempt)
	defer func() {
		a.end()
		place.Store(nil)
		c.settle(a, ctx.Err() != nil)
		*a = ended[K]{} // an idle worker holds no key
		c.counters.active.Add(-1)
		c.queue.Done(w.Key)
	}()
	a.result, a.err = c.reconcile(ctx, a.attempt)
}

// reconcile calls the reconciler once.
func (c *Controller[K]) reconcile(ctx context.Context, a *attempt[K]) (result Result, err error) {
	ctx = withAttempt(ctx, a)
	if c.o.ReconcileTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.o.ReconcileTimeout, ErrReconcileTimeout)
		defer cancel()
	}
	result, err = c.callReconciler(ctx, a.work.Key)
	a.timedOut = c.o.ReconcileTimeout > 0 && errors.Is(context.Cause(ctx), ErrReconcileTimeout)
	return result, err
}

// callReconciler turns a panic into an error, unless the panic is to end the process.
func (c *Controller[K]) callReconciler(ctx context.Context, key K) (result Result, err error) {
	if !c.o.CrashOnPanic { // a recovered panic would print another stack
		defer func() {
			if p := recover(); p != nil {
				err = api.Recovered(p)
			}
		}()
	}
	for _, g := range c.gates.gates {
		ctx = g.Begin(ctx, key)
	}
	return c.reconciler.Reconcile(ctx, key)
}

// settle decides what happens to a key: see the table in the package's documentation. ending means that the controller
// is ending. Then a context error tells nothing about the object, and the queue drops all keys that are added.
func (c *Controller[K]) settle(a *ended[K], ending bool) {
	again := workqueue.Item{Priority: a.work.Priority}
	if a.result.Priority != 0 {
		again.Priority = a.result.Priority
	}
	a.outcome = c.classify(a, ending)
	switch a.outcome {
	case Succeeded, Dropped:
		c.queue.Forget(a.work.Key)
	case Requeued:
		c.queue.Forget(a.work.Key)
		again.After = a.result.RequeueAfter
		again.Cause = a.cause(eventRequeue)
		c.queue.AddWith(a.work.Key, again)
	case Failed:
		again.RateLimited = true
		again.Cause = a.cause(eventRetry)
		c.queue.AddWith(a.work.Key, again)
	}
	if a.outcome == Requeued || a.outcome == Failed {
		a.next = c.queue.DueAt(a.work.Key)
	}
	c.trace(a)
}

func (c *Controller[K]) classify(a *ended[K], ending bool) Outcome {
	switch {
	case a.err == nil && a.result.RequeueAfter > 0:
		return Requeued
	case a.err == nil:
		return Succeeded
	case ending && (errors.Is(a.err, context.Canceled) || errors.Is(a.err, context.DeadlineExceeded)):
		return Cancelled
	case errors.Is(a.err, ErrTerminal):
		return Terminal
	case c.o.MaxRetries > 0 && a.number > c.o.MaxRetries:
		return Dropped
	}
	return Failed
}

// cause returns the cause of adding the key again.
func (a *attempt[K]) cause(event string) workqueue.Cause {
	return workqueue.Cause{Source: a.controller.name, Event: event, Object: formatKey(a.work.Key), At: time.Now()}
}

// watchWorkers logs reconciles that take long, until ctx ends.
func (c *Controller[K]) watchWorkers(ctx context.Context) {
	if c.o.StuckAfter < 0 {
		return
	}
	timer := time.NewTimer(c.o.StuckAfter)
	defer timer.Stop()
	patience := map[*attempt[K]]time.Duration{}
	for {
		select {
		case <-timer.C:
			timer.Reset(c.logStuck(patience))
		case <-ctx.Done():
			return
		}
	}
}

// logStuck logs each reconcile that takes longer than its patience, and doubles that patience. It returns the time
// until the next check. A reconcile that begins meanwhile has at least this much patience.
func (c *Controller[K]) logStuck(patience map[*attempt[K]]time.Duration) (next time.Duration) {
	next = c.o.StuckAfter
	before := maps.Clone(patience)
	clear(patience) // of those that have ended
	for _, a := range c.inWork() {
		took, longest := time.Since(a.started), cmp.Or(before[a], c.o.StuckAfter)
		if took >= longest {
			c.log.Warn("reconcile takes long", a.fields(took, a.currentCauses())...)
		}
		for took >= longest {
			longest *= 2
		}
		patience[a] = longest
		next = min(next, longest-took)
	}
	return next
}

// logInFlight logs the reconciles that the end of the controller waits for.
func (c *Controller[K]) logInFlight() {
	for _, a := range c.inWork() {
		c.log.Info("waiting for a reconcile", a.fields(time.Since(a.started), a.currentCauses())...)
	}
}
