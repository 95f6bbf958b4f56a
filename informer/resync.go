package informer

import "time"

// minimumResyncPeriod is the shortest period. Shorter periods are raised to it.
const minimumResyncPeriod = time.Second

// resyncTimer computes when a handler is due for its next resync.
type resyncTimer struct {
	period time.Duration // 0 means no resyncs
	next   time.Time
}

func newResyncTimer(period time.Duration) resyncTimer {
	if period <= 0 {
		return resyncTimer{}
	}
	return resyncTimer{period: max(period, minimumResyncPeriod)}
}

func (t *resyncTimer) due(now time.Time) bool {
	return t.period > 0 && !now.Before(t.next)
}

func (t *resyncTimer) start(now time.Time) { t.next = now.Add(t.period) }

// advance is called when the timer is due. The next time is counted from the time when the timer was due, not from now,
// so that a delay does not move later resyncs.
func (t *resyncTimer) advance(now time.Time) {
	periods := 1 + now.Sub(t.next)/t.period
	t.next = t.next.Add(periods * t.period)
}

// scheduleResync lets the queue get a resync when the first handler is due, or was due before it left. The lock is
// held.
func (p *pipeline[T]) scheduleResync(now time.Time) {
	var next time.Time
	for _, l := range p.handlers.all {
		if l.resync.period > 0 && (next.IsZero() || l.resync.next.Before(next)) {
			next = l.resync.next
		}
	}
	if !next.IsZero() && p.handlers.resync != nil {
		p.handlers.resync.Reset(next.Sub(now))
	}
}
