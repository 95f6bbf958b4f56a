package informer

import (
	"context"
	"time"
)

// minimumResyncPeriod is the shortest period. Shorter periods are raised to it.
const minimumResyncPeriod = time.Second

// resyncTimer computes when a handler is due for its next resync.
type resyncTimer struct {
	period time.Duration // 0 means no resyncs
	next   time.Time
}

func (t *resyncTimer) due(now time.Time) bool {
	return t.period > 0 && !now.Before(t.next)
}

func (t *resyncTimer) start(now time.Time) { t.next = now.Add(t.period) }

// advance is called when the timer is due. The next time is counted from the time when the timer was due, not from now.
// Otherwise the next time would be a little after a tick of the ticker, and every other resync would be missed.
func (t *resyncTimer) advance(now time.Time) {
	periods := 1 + now.Sub(t.next)/t.period
	t.next = t.next.Add(periods * t.period)
}

// resyncPeriod returns the period of a handler that wants desired. check is the period of the ticker of a running
// informer: it bounds the result from below, and without a ticker there are no resyncs.
func resyncPeriod(desired, check time.Duration, running bool) time.Duration {
	if desired <= 0 || running && check <= 0 {
		return 0
	}
	desired = max(desired, minimumResyncPeriod)
	if running {
		desired = max(desired, check)
	}
	return desired
}

// resyncLoop puts a resync into the queue when a handler is due. It checks once in every period.
func (p *pipeline[T]) resyncLoop(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if p.anyDue(now) {
				p.fifo.Resync()
			}
		}
	}
}

func (p *pipeline[T]) anyDue(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.handlers.all {
		if l.resync.due(now) {
			return true
		}
	}
	return false
}
