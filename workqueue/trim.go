package workqueue

import "time"

const (
	// roomy is the number of entries that a queue always keeps room for.
	roomy = 256
	// trimAfter is how long the queue keeps more room than that without using it. If it released the room at once, a
	// queue whose backlog comes and goes would allocate memory again and again.
	trimAfter = 10 * time.Second
)

// release removes an entry that is neither pending nor processed.
func (q *Queue[K]) release(slot int, e *entry[K]) {
	q.table.release(slot, e)
	if q.trimAt == 0 && q.isRoomy() && !q.closed {
		q.planTrim(q.now())
	}
}

// isRoomy reports whether the queue has much more room than entries.
func (q *Queue[K]) isRoomy() bool { return q.slab.room > roomy && q.slab.room > 2*q.slab.used }

func (q *Queue[K]) planTrim(now stamp) {
	q.trimAt = now.add(trimAfter)
	q.alarm.set(q.trimAt, now)
}

// trim releases the room that was not needed since the last trim. So the second trim after a burst releases the room of
// the burst, at the latest.
func (q *Queue[K]) trim(now stamp) {
	room, least := max(q.slab.peak, roomy), max(q.slab.used, roomy)
	q.slab.trim(room)
	q.table.trim(room)
	q.delays.trim(room)
	q.slab.peak, q.trimAt = q.slab.used, 0
	if room > least {
		q.planTrim(now)
	}
}
