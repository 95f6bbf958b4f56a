package controller

import (
	"context"
	"time"
)

// watchWorkers logs which reconciles take long, until ctx ends.
func (c *Controller[K]) watchWorkers(ctx context.Context) {
	if c.o.StuckAfter < 0 {
		return
	}
	timer := time.NewTimer(c.o.StuckAfter)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			timer.Reset(c.logStuck())
		case <-ctx.Done():
			return
		}
	}
}

// logStuck logs each reconcile whose time has come, and returns how long the next one has at least. One that begins
// meanwhile has longer.
func (c *Controller[K]) logStuck() (next time.Duration) {
	next = c.o.StuckAfter
	for _, a := range c.inWork() {
		took := time.Since(a.started)
		if a.patience == 0 {
			a.patience = c.o.StuckAfter
		}
		if took >= a.patience {
			c.log.Warn("reconcile takes long", a.fields(took, a.currentCauses())...)
		}
		for took >= a.patience {
			a.patience *= 2
		}
		next = min(next, a.patience-took)
	}
	return next
}

// logInFlight says what a controller that is ending waits for.
func (c *Controller[K]) logInFlight() {
	for _, a := range c.inWork() {
		c.log.Info("waiting for a reconcile", a.fields(time.Since(a.started), a.currentCauses())...)
	}
}
