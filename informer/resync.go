package informer

import (
	"context"
	"time"
)

// minimumResyncPeriod is the shortest period; a shorter one that is asked for is raised to it.
const minimumResyncPeriod = time.Second

// resyncTimer says when a handler wants to be told of everything again.
type resyncTimer struct {
	period time.Duration // 0 is never
	next   time.Time
}

func (t *resyncTimer) due(now time.Time) bool {
	return t.period > 0 && !now.Before(t.next)
}

func (t *resyncTimer) start(now time.Time) { t.next = now.Add(t.period) }

// advance is called when the timer is due. It counts from when that was, and not from when somebody got round to it:
// the next time would else be a little after the ticker looks, and every other resync would be missed.
func (t *resyncTimer) advance(now time.Time) {
	periods := 1 + now.Sub(t.next)/t.period
	t.next = t.next.Add(periods * t.period)
}

// resyncPeriod settles the period of a handler that asks for desired, where check is the informer's own period: 0
// disables either; a running informer does not look more often than it was started to.
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

// resyncLoop asks for a resync whenever a handler is due, every period.
func (i *Informer[T]) resyncLoop(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if i.anyDue(now) {
				i.fifo.Resync()
			}
		}
	}
}

func (i *Informer[T]) anyDue(now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.listeners {
		if l.resync.due(now) {
			return true
		}
	}
	return false
}
