package workqueue

import (
	"context"
	"errors"
	"fmt"
)

// ErrShutDown is the error of Get when the queue is shut down and will hand out no more keys. It replaces the second
// result of client-go's Get.
var ErrShutDown = errors.New("workqueue: shut down")

// DrainError reports that a drain ended before the queue was empty. Err is the context's error, or ErrShutDown if
// ShutDown ended the drain.
type DrainError struct {
	Ready      int // ready keys that no worker had taken
	Processing int // keys that a worker had taken and that were not Done
	Err        error
}

// Error returns one line with the numbers of keys that are left and the reason.
func (e *DrainError) Error() string {
	return fmt.Sprintf("workqueue: drain ended with %d keys ready and %d being processed: %v", e.Ready, e.Processing, e.Err)
}

// Unwrap returns the error that ended the drain.
func (e *DrainError) Unwrap() error { return e.Err }

// ShutDown ends the queue. From now on it ignores adds. It drops the delayed keys, hands out the ready keys, and then
// Get returns ErrShutDown. ShutDown does not block and may be called again. It ends a drain that is under way. It
// corresponds to ShutDown of client-go; controller-runtime's priority queue also drops the ready keys.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
	q.endDrain()
}

// ShutDownWithDrain does the same as ShutDown and then blocks until the queue is empty: every ready key was handed out,
// and every key that was handed out is Done, including keys that were added again while they were processed. So workers
// must call Get until it returns ErrShutDown. Delayed keys are dropped, because their delay may be long.
//
// It returns nil, or a DrainError if the context ended first or ShutDown was called. It corresponds to
// ShutDownWithDrain of client-go, which does not wait for queued keys (kubernetes#141079).
func (q *Queue[K]) ShutDownWithDrain(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.close()
	if q.table.used == 0 {
		return nil
	}
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	ended, reason := q.drained, ErrShutDown
	q.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
		reason = ctx.Err()
	}
	q.mu.Lock()
	if q.table.used == 0 {
		return nil
	}
	return &DrainError{Ready: q.ready.length, Processing: q.inWork, Err: reason}
}

// ShuttingDown reports whether ShutDown or ShutDownWithDrain was called.
func (q *Queue[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// close makes the queue ignore adds, drops the delayed keys and wakes the waiting Gets.
func (q *Queue[K]) close() {
	q.closed = true
	q.delays.timer.Stop()
	if q.trimmer != nil {
		q.trimmer.Stop()
	}
	for i := range q.delays.length {
		q.dropPending(q.table.at(q.delays.slot(i).id))
	}
	q.delays.pages, q.delays.length = nil, 0
	q.wakeOne()
}

// endDrain lets the callers of ShutDownWithDrain return.
func (q *Queue[K]) endDrain() {
	if q.drained != nil {
		close(q.drained)
		q.drained = nil
	}
}
