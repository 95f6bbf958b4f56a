package workqueue

// StopTimer stops the queue's timer and says whether it was running.
func (q *Queue[K]) StopTimer() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.alarm.timer != nil && q.alarm.timer.Stop()
}
