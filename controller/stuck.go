package controller

import (
	"cmp"
	"context"
	"maps"
	"time"
)

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
