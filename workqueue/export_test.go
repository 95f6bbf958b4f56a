package workqueue

import "time"

// StopTimer stops the queue's timer and reports whether it was running.
func (q *Queue[K]) StopTimer() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.alarm.timer != nil && q.alarm.timer.Stop()
}

// Chunks returns the number of chunks in the queue's slab.
func (q *Queue[K]) Chunks() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.slab.chunks)
}

// Room returns for how many entries, slots of the table and delays the queue has memory.
func (q *Queue[K]) Room() (entries, slots, delays int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.slab.room, len(q.table.hashes), len(q.delays.pages) * dueLength
}

// NewAgeing returns a queue with another ageing: one turns the queue into a FIFO.
func NewAgeing[K comparable](ageing int, o Options, limiters ...RateLimiter[K]) *Queue[K] {
	q := New(o, limiters...)
	q.ready.ageing = ageing
	return q
}

// Delay returns the delay after the given number of failures.
func (b Backoff) Delay(failures int) time.Duration { return b.delay(failures) }
