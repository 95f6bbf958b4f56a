package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/runstate"
)

// runSource runs one source until it ends. An error of a source that was ending is ignored; a panic is counted.
func (c *Controller[K]) runSource(ctx context.Context, s *Sink[K], cancel context.CancelFunc) {
	err := errGoexit
	defer func() {
		var p *api.PanicError
		if !c.endSource(ctx, s, err, cancel) && errors.As(err, &p) {
			s.contained("run", "", p)
		}
	}()
	err = callSource(ctx, s)
}

// endSource removes a source that has ended. If the source failed, the controller ends.
func (c *Controller[K]) endSource(ctx context.Context, s *Sink[K], err error, cancel context.CancelFunc) (failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if failed = ctx.Err() == nil && err != nil; failed {
		s.err = fmt.Errorf("controller: %s: source %s: %w", c.name, s.name, err)
		c.fail(s.err, cancel)
	}
	s.cancel()
	s.removed.Store(true)
	c.forget(s)
	close(s.done)
	return failed
}

// callSource runs a source and turns a panic into an error.
func callSource[K comparable](ctx context.Context, s *Sink[K]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = api.Recovered(p)
		}
	}()
	return s.source.Run(ctx, s)
}

// fail makes Run end with an error, unless it is already ending. The caller holds the lock.
func (c *Controller[K]) fail(err error, cancel context.CancelFunc) {
	if c.life == runstate.Running && c.failure == nil {
		c.failure = err
		cancel()
	}
}

// forget removes a sink whose source has ended. The caller holds the lock.
func (c *Controller[K]) forget(s *Sink[K]) {
	c.sinks = slices.DeleteFunc(c.sinks, func(other *Sink[K]) bool { return other == s })
}

// awaitSources waits until every source is synced, including sources that join meanwhile. It reports whether they are.
// Otherwise ctx has ended, or the time is up and Run will fail.
func (c *Controller[K]) awaitSources(ctx context.Context, cancel context.CancelFunc) bool {
	patience := ctx
	if c.o.CacheSyncTimeout > 0 {
		var stop context.CancelFunc
		patience, stop = context.WithTimeout(ctx, c.o.CacheSyncTimeout)
		defer stop()
	}
	again := firstReminder
	reminder := time.NewTimer(again)
	defer reminder.Stop()
	for ctx.Err() == nil {
		over := patience.Err() != nil
		late := c.unsynced() // read again when the time is up, because the others may be synced by now
		if ctx.Err() != nil {
			return false // perhaps because a source has failed, which unsynced no longer contains
		}
		if len(late) == 0 {
			close(c.synced)
			return true
		}
		if over {
			c.failSync(late, cancel)
			return false
		}
		select {
		case <-late[0].synced:
		case <-late[0].done: // removed, or without more keys, or failed: then ctx has ended
		case <-reminder.C:
			c.logLate(late)
			again *= 2
			reminder.Reset(again)
		case <-patience.Done():
		}
	}
	return false
}

// firstReminder is when the log first names the sources that Run waits for. Each later entry comes after twice the
// time.
const firstReminder = 10 * time.Second

func (c *Controller[K]) logLate(late []*Sink[K]) {
	for _, s := range late {
		if !s.isSynced() { // the others may be synced by now
			c.log.Warn("waiting for a source", zap.String("source", s.name), zap.NamedError("err", s.notSynced()))
		}
	}
}

// NotSynced returns a *SyncError for each source that is not synced, joined, or nil if all are synced. Use it in health
// checks, and after waiting for Synced without success. controller-runtime has nothing like it.
func (c *Controller[K]) NotSynced() error { return c.syncErrors(c.unsynced(), 0) }

func (c *Controller[K]) syncErrors(late []*Sink[K], after time.Duration) error {
	var reasons []error
	for _, s := range late {
		reasons = append(reasons, &SyncError{Controller: c.name, Source: s.name, Timeout: after, Err: s.notSynced()})
	}
	return errors.Join(reasons...)
}

// unsynced returns the sources that Run waits for. Removed sources are skipped, even while they are still ending.
func (c *Controller[K]) unsynced() []*Sink[K] {
	return slices.DeleteFunc(c.watched(), func(s *Sink[K]) bool { return s.isSynced() || s.Removed() })
}

// watched returns the sources that have not ended.
func (c *Controller[K]) watched() []*Sink[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sinks)
}

// failSync makes Run fail with an error for each source whose time is up.
func (c *Controller[K]) failSync(late []*Sink[K], cancel context.CancelFunc) {
	err := c.syncErrors(late, c.o.CacheSyncTimeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(err, cancel)
}
