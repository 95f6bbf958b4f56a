package controller

import "time"

// Times say when a reconcile and what led to it happened. They need no memory, unlike a Report.
type Times struct {
	// Received is when the informers received the oldest of the events that the reconcile answers, as far as its causes
	// are kept. It is zero if there is none among them: initial lists, resyncs, retries and what was asked for are not
	// events about which somebody may have to wait for a reconcile.
	Received time.Time
	// Ready is when the queue could hand the key out, which is when it was added, or when its time had come.
	Ready time.Time
	// Started is when the reconciler was called, and Done when it returned.
	Started, Done time.Time
}

// ObserveTimes has f called after every reconcile from now on, on the worker's goroutine, while the key is still in work.
// It must neither block nor panic. The function that is returned ends that.
// Options.OnReconcile is for who wants to know more, and before New.
func (c *Controller[K]) ObserveTimes(f func(Times)) (stop func()) { return c.times.Add(f) }

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

// isEvent tells whether a cause is something that happened to an object while somebody watched.
func isEvent(event string) bool {
	switch event {
	case eventAdd, eventUpdate, eventDelete, eventEvent:
		return true
	}
	return false
}
