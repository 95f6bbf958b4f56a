package workqueue

import "context"

// drain is the state of a running ShutDownWithDrain. Several callers may wait for it.
type drain struct {
	ended chan struct{}
	err   error // a DrainError if keys are left; written before ended is closed
}

// ShutDown ends the queue. From now on it ignores adds. It drops the delayed keys, hands out the ready keys, and then
// Get returns ErrShutDown. ShutDown does not block and may be called again. It ends a drain that is under way. It
// corresponds to ShutDown of client-go; controller-runtime's priority queue also drops the ready keys.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
	if q.drain != nil {
		q.drain.err = q.left(ErrShutDown)
		close(q.drain.ended)
		q.drain = nil
	}
}

// ShutDownWithDrain does the same as ShutDown and then blocks until the queue is empty: every ready key was handed out,
// and every key that was handed out is Done, including keys that were added again while they were processed. So workers
// must call Get until it returns ErrShutDown. Delayed keys are dropped, because their delay may be long.
//
// It returns nil, or a DrainError if the context ended first or ShutDown was called. It corresponds to
// ShutDownWithDrain of client-go, which does not wait for queued keys (kubernetes#141079).
func (q *Queue[K]) ShutDownWithDrain(ctx context.Context) error {
	d := q.beginDrain()
	if d == nil {
		return nil
	}
	select {
	case <-d.ended:
		return d.err
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.table.used == 0 {
			return nil
		}
		return q.left(ctx.Err())
	}
}

// beginDrain closes the queue and returns the drain to wait for, or nil if the queue is empty.
func (q *Queue[K]) beginDrain() *drain {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
	if q.table.used == 0 {
		return nil
	}
	if q.drain == nil {
		q.drain = &drain{ended: make(chan struct{})}
	}
	return q.drain
}

// endDrain ends the drain, if any, when no entry is left.
func (q *Queue[K]) endDrain() {
	if q.drain != nil && q.table.used == 0 {
		close(q.drain.ended)
		q.drain = nil
	}
}

// close makes the queue ignore adds, drops the delayed keys and wakes all waiting Gets.
func (q *Queue[K]) close() {
	q.closed = true
	q.alarm.stop()
	q.trimAt = 0
	for e := range q.delays.all {
		q.dropPending(e)
	}
	q.delays.clear()
	q.waiters.wakeAll()
}

// left returns the error of a drain that ends now.
func (q *Queue[K]) left(err error) *DrainError {
	return &DrainError{Ready: q.ready.length, Processing: q.inWork, Err: err}
}
