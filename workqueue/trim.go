package workqueue

import "time"

const (
	// roomy is the number of entries that a queue keeps room for, however few are in use.
	roomy = 256
	// trimAfter is how long room beyond that is kept although it is not needed. Were it given back at once, a queue
	// whose backlog comes and goes would allocate its memory again and again.
	trimAfter = 10 * time.Second
)

// release forgets an entry of which nothing is pending or processed.
func (q *Queue[K]) release(slot int, e *entry[K]) {
	q.table.release(slot, e)
	if q.trimAt == 0 && q.isRoomy() && !q.closed {
		q.planTrim(q.now())
	}
}

// isRoomy tells whether there is much more room than entries.
func (q *Queue[K]) isRoomy() bool { return q.slab.room > roomy && q.slab.room > 2*q.slab.used }

func (q *Queue[K]) planTrim(now stamp) {
	q.trimAt = now.add(trimAfter)
	q.alarm.set(q.trimAt, now)
}

// trim gives back the room that has not been needed since the last trim. So what a burst needed is given back with the
// second trim after it, at the latest.
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
