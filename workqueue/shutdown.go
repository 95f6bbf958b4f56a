package workqueue

import "context"

// drain is what ShutDownWithDrain waits for.
type drain struct {
	ended chan struct{}
	err   error // a DrainError if the queue is not empty; written before ended is closed
}

// ShutDown ends the queue: adds are ignored from now on, keys that wait for their time are dropped, keys that are
// ready are still handed out, and then Get returns ErrShutDown. It waits for nothing, may be called again, and cuts
// short a drain that is under way.
// It corresponds to ShutDown of client-go; controller-runtime's priority queue drops what is ready, too.
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

// ShutDownWithDrain is ShutDown, and then waits until every key that was ready has been handed out and every key that
// was handed out is Done, those among them that were added again included; so workers must go on with Get until it
// says ErrShutDown. (Keys that wait for their time are dropped: their wait may be longer than anyone's patience.)
// It returns nil, or a DrainError when the context ended first or ShutDown was called.
// It corresponds to ShutDownWithDrain of client-go, which does not wait for what is queued (kubernetes#141079).
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

// endDrain ends a drain if there is one and nothing is left.
func (q *Queue[K]) endDrain() {
	if q.drain != nil && q.table.used == 0 {
		close(q.drain.ended)
		q.drain = nil
	}
}

// close refuses adds, drops the delayed keys and wakes everybody who waits.
func (q *Queue[K]) close() {
	if q.closed {
		return
	}
	q.closed = true
	q.alarm.stop()
	q.trimAt = 0
	for e := range q.delays.all {
		q.dropPending(e)
	}
	q.delays.clear()
	q.waiters.wakeAll()
}

// left says what a drain left undone.
func (q *Queue[K]) left(err error) *DrainError {
	return &DrainError{Ready: q.ready.length, Processing: q.inWork, Err: err}
}
