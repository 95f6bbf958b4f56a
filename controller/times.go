package controller

import "time"

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

// ObserveTimes makes the controller call f after every reconcile, on the worker's goroutine, before the key is Done. f
// must neither block nor panic. The returned function removes f. Options.OnReconcile delivers more details, but must be
// set before New.
func (c *Controller[K]) ObserveTimes(f func(Times)) (stop func()) { return c.times.Add(f) }

// ObserveReports is ObserveTimes with everything that Options.OnReconcile gets. Each reconcile then costs the memory of
// a Report.
func (c *Controller[K]) ObserveReports(f func(Report)) (stop func()) { return c.reports.Add(f) }

func (a *attempt[K]) times() Times {
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
