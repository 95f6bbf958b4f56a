package workqueue

import "time"

// StopTimer stops the queue's timers and reports whether one was running.
func (q *Queue[K]) StopTimer() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delays.timer.Stop() || q.trimmer != nil && q.trimmer.Stop()
}

// Chunks returns the number of chunks in the queue's table.
func (q *Queue[K]) Chunks() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.table.chunks)
}

// Room returns for how many entries, slots of the table and delays the queue has memory.
func (q *Queue[K]) Room() (entries, slots, delays int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.table.room, len(q.table.slots), len(q.delays.pages) * pageLength
}

// SetDelayedAdds sets the number of the adds with a delay.
func (q *Queue[K]) SetDelayedAdds(n uint32) { q.delays.adds = n }

// NewAgeing returns a queue with another ageing: one turns the queue into a FIFO.
func NewAgeing[K comparable](ageing int, o Options, limiters ...RateLimiter[K]) *Queue[K] {
	q := New(o, limiters...)
	q.ready.ageing = ageing
	return q
}

// Delay returns the delay after the given number of failures, at least 1. It knows no defaults.
func (b Backoff) Delay(failures int) time.Duration { return b.delay(failures) }
