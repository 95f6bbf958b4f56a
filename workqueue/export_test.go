package workqueue

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
