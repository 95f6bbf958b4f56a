package workqueue

import "time"

// alarm is the queue's one timer. It runs a function on a goroutine of its own when an entry is due, so that Len and
// the metrics move although nobody waits in Get; between alarms there is no goroutine.
type alarm struct {
	ring  func()
	timer *time.Timer // nil until it is first set
	at    stamp       // when it will ring; zero when it will not, or is ringing
}

// set makes the alarm ring at a time at the latest. It may ring earlier, for an entry that has left: that costs less
// than moving it whenever one leaves.
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

// ringBatch bounds how many entries become ready while the lock is held, so that a million that are due together stop
// nobody for long.
const ringBatch = 256

// ring does what is due.
func (q *Queue[K]) ring() {
	for q.ringSome() {
	}
}

// ringSome makes up to ringBatch entries ready that are due, and says whether there may be more.
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

// setAlarm sets the alarm for what comes next, if anything.
func (q *Queue[K]) setAlarm(now stamp) {
	if !q.delays.empty() {
		q.alarm.set(q.delays.first(), now)
	}
	if q.trimAt != 0 {
		q.alarm.set(q.trimAt, now)
	}
}

// undelay takes an entry out of the heap.
func (q *Queue[K]) undelay(e *entry[K]) {
	q.delays.remove(e)
	if q.delays.empty() && q.trimAt == 0 {
		q.alarm.stop()
	}
}
