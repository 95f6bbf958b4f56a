package workqueue

import "time"

// alarm is the queue's only timer. It runs a function on a goroutine of its own when an entry is due, so that Len and
// the metrics change even if no worker waits in Get. Between alarms there is no goroutine.
type alarm struct {
	ring  func()
	timer *time.Timer // nil before the first set
	at    stamp       // the time of the next ring; zero if no ring is set, or during a ring
}

// set makes the alarm ring at the given time or earlier. It may ring too early, for an entry that has left the heap;
// that costs less than moving the alarm whenever an entry leaves.
func (a *alarm) set(at, now stamp) {
	if a.at != 0 && a.at <= at {
		return
	}
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Duration(at-now), a.ring)
	} else {
		a.timer.Reset(time.Duration(at - now))
	}
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.at = 0
}

// ringBatch limits how many entries become ready under one hold of the lock. Otherwise a million entries that are due
// together would block all other callers for long.
const ringBatch = 256

// ring makes all entries ready that are due.
func (q *Queue[K]) ring() {
	for q.ringSome() {
	}
}

// ringSome makes up to ringBatch due entries ready, and reports whether more may be due.
func (q *Queue[K]) ringSome() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.alarm.at = 0
	if q.trimAt != 0 && q.trimAt <= now {
		q.trim(now)
	}
	for range ringBatch {
		if q.delays.empty() || q.delays.first() > now {
			q.setAlarm(now)
			return false
		}
		e := q.delays.pop()
		q.becomeReady(e, e.ready)
	}
	return true
}

// setAlarm sets the alarm for the next delayed entry and the next trim, if any.
func (q *Queue[K]) setAlarm(now stamp) {
	if !q.delays.empty() {
		q.alarm.set(q.delays.first(), now)
	}
	if q.trimAt != 0 {
		q.alarm.set(q.trimAt, now)
	}
}

// undelay removes an entry from the heap.
func (q *Queue[K]) undelay(e *entry[K]) {
	q.delays.remove(e)
	if q.delays.empty() && q.trimAt == 0 {
		q.alarm.stop()
	}
}
