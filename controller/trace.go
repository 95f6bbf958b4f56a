package controller

import "time"

// Trace is a set of functions that see the reconciles of a controller, for metrics, pages and logs. Any of them may be
// nil. They run on the worker's goroutine, before the key is Done, so the worker and the key wait for them. They must
// neither block nor panic.
type Trace struct {
	// Reconciled is called after every reconcile.
	Reconciled func(Reconciled)
}

// Reconciled is a reconcile that has returned. The worker uses the value again when the function of the trace returns,
// so a function that wants to keep it keeps the result of Times or Report.
type Reconciled interface {
	// Times returns the times of the reconcile and of the events before it. It needs no memory.
	Times() Times
	// Report returns everything that is known about the reconcile. It needs memory.
	Report() Report
}

// Trace calls the functions of t after every reconcile that ends from now on, until stop is called. It may be called at
// any time. The controller's own log, counters and history are traces too.
func (c *Controller[K]) Trace(t Trace) (stop func()) { return c.traces.Add(t) }

// traceSelf adds the traces of the controller itself.
func (c *Controller[K]) traceSelf() {
	for _, see := range []func(*ended[K]){c.count, c.remember, c.logEnd} {
		c.Trace(Trace{Reconciled: func(r Reconciled) { see(r.(*ended[K])) }})
	}
}

// trace reports an attempt that has ended.
func (c *Controller[K]) trace(a *ended[K]) {
	for _, t := range c.traces.All() {
		if t.Reconciled != nil {
			t.Reconciled(a)
		}
	}
}

// Times are the times of a reconcile and of the events before it. Unlike a Report, they need no memory.
type Times struct {
	// Received is when the informers received the oldest event that the reconcile answers, as far as its causes are
	// kept. It is zero if the causes contain no event. Initial lists, resyncs, retries and requests are not events,
	// because no user waits for their reconcile.
	Received time.Time
	// Ready is when the queue could hand out the key: when the key was added, or when its delay ended.
	Ready time.Time
	// Started is when the reconciler was called, and Done when it returned.
	Started, Done time.Time
}

// Times implements Reconciled.
func (a *ended[K]) Times() Times {
	t := Times{Ready: a.work.Ready, Started: a.started, Done: a.started.Add(a.took)}
	for i := range a.work.Causes {
		c := &a.work.Causes[i]
		if isEvent(c.Event) && (t.Received.IsZero() || c.At.Before(t.Received)) {
			t.Received = c.At
		}
	}
	return t
}

// isEvent reports whether a cause is a change of an object that a watch delivered.
func isEvent(event string) bool {
	switch event {
	case eventAdd, eventUpdate, eventDelete:
		return true
	}
	return false
}
