package controller

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/workqueue"
)

// Outcome is the result of a reconcile.
type Outcome string

const (
	// Succeeded is a reconcile that requested nothing more.
	Succeeded Outcome = "success"
	// Requeued is a reconcile that requested another one after a time.
	Requeued Outcome = "requeue_after"
	// Failed is a reconcile that will be retried.
	Failed Outcome = "error"
	// Terminal is a reconcile that failed with a TerminalError.
	Terminal Outcome = "terminal"
	// Dropped is a reconcile that failed once more than Options.MaxRetries allows.
	Dropped Outcome = "dropped"
	// Cancelled is a reconcile that ended early because the controller was ending.
	Cancelled Outcome = "cancelled"
)

// Report describes one reconcile, for metrics and traces.
type Report struct {
	Controller string
	Key        string
	ID         string // see ReconcileID
	Attempt    int    // 1 for a first attempt
	Priority   int

	// Causes are those that Causes returns; CausesOmitted counts the others. In a trace, the slice is valid until the
	// function returns; clone it to keep it.
	Causes        []workqueue.Cause
	CausesOmitted int
	// Added is when the key was added, Ready when it was due, and Started when the reconciler was called. Together with
	// the time of the oldest cause, they show where the time between an event and its reconcile went.
	Added, Ready, Started time.Time
	Took                  time.Duration

	Outcome      Outcome
	RequeueAfter time.Duration // for Requeued
	// Next is when the key is due again because this reconcile failed or requested another one. It is zero otherwise,
	// and if an event has made the key ready already.
	Next     time.Time
	Err      error
	TimedOut bool // Options.ReconcileTimeout passed
}

// Report implements Reconciled.
func (a *ended[K]) Report() Report {
	return Report{
		Controller: a.controller.name, Key: formatKey(a.work.Key), ID: a.reconcileID(),
		Attempt: a.number, Priority: a.work.Priority,
		Causes: a.work.Causes, CausesOmitted: a.work.CausesOmitted,
		Added: a.work.Added, Ready: a.work.Ready, Started: a.started, Took: a.took,
		Outcome: a.outcome, RequeueAfter: a.requeueAfter(), Next: a.next, Err: a.err, TimedOut: a.timedOut,
	}
}

// requeueAfter returns the delay after which the key is added again because the reconcile requested it.
func (a *ended[K]) requeueAfter() time.Duration {
	if a.outcome == Requeued {
		return a.result.RequeueAfter
	}
	return 0
}

// counters only grow, except active.
type counters struct {
	active, panics, timeouts, sourcePanics                    atomic.Int64
	succeeded, requeued, failed, terminal, dropped, cancelled atomic.Int64
}

// count counts an attempt that has ended.
func (c *Controller[K]) count(a *ended[K]) {
	n := &c.counters
	if a.timedOut {
		n.timeouts.Add(1)
	}
	var p *api.PanicError
	if errors.As(a.err, &p) {
		n.panics.Add(1)
	}
	switch a.outcome {
	case Succeeded:
		n.succeeded.Add(1)
	case Requeued:
		n.requeued.Add(1)
	case Failed:
		n.failed.Add(1)
	case Terminal:
		n.terminal.Add(1)
	case Dropped:
		n.dropped.Add(1)
	case Cancelled:
		n.cancelled.Add(1)
	}
}

// Stats are the numbers of a controller at one moment.
type Stats struct {
	Name          string
	Synced        bool // every source is synced, or was when the workers could begin
	Held          bool // the workers wait for the release of RunHeld
	Workers       int  // controller_runtime_max_concurrent_reconciles
	ActiveWorkers int  // controller_runtime_active_workers

	// Reconciles counts the reconciles that have returned: controller_runtime_reconcile_total. The fields below count
	// them by outcome.
	Reconciles int64
	Succeeded  int64
	Requeued   int64
	Failed     int64 // Failed, Terminal and Dropped together are controller_runtime_reconcile_errors_total
	Terminal   int64 // controller_runtime_terminal_reconcile_errors_total
	Dropped    int64
	Cancelled  int64

	Panics   int64 // of reconciles: controller_runtime_reconcile_panics_total
	Timeouts int64 // controller_runtime_reconcile_timeouts_total
	// SourcePanics counts panics of predicates, map functions and gates, including those of removed sources, and panics
	// of sources that were ending. A source that panics earlier ends the controller.
	SourcePanics int64

	// Gated counts the keys that a Gate holds back. The queue does not contain them.
	Gated int

	Sources []SourceStats
	Queue   workqueue.Stats
}

// SourceStats are the numbers of one source.
type SourceStats struct {
	Name   string
	Synced bool
	Panics int64 // of its predicates and its map function
}

// size returns the number of workers, or before Run the number that Run would start now.
func (c *Controller[K]) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.o.workers(c.resource)
}

// Stats returns the current numbers. It may be called before, during and after Run.
func (c *Controller[K]) Stats() Stats {
	n := &c.counters
	workers := c.size()
	s := Stats{
		Name: c.name, Synced: runstate.IsClosed(c.synced), Held: c.held.Load(), Workers: workers, ActiveWorkers: int(n.active.Load()),
		Succeeded: n.succeeded.Load(), Requeued: n.requeued.Load(), Failed: n.failed.Load(),
		Terminal: n.terminal.Load(), Dropped: n.dropped.Load(), Cancelled: n.cancelled.Load(),
		Panics: n.panics.Load(), Timeouts: n.timeouts.Load(), SourcePanics: n.sourcePanics.Load(),
		Gated: c.gates.len(),
		Queue: c.queue.Stats(),
	}
	s.Reconciles = s.Succeeded + s.Requeued + s.Failed + s.Terminal + s.Dropped + s.Cancelled
	for _, sink := range c.watched() {
		s.Sources = append(s.Sources, sink.stats())
	}
	return s
}

func (s *Sink[K]) stats() SourceStats {
	return SourceStats{Name: s.name, Synced: s.isSynced(), Panics: s.panics.Load()}
}
