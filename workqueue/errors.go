package workqueue

import (
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
