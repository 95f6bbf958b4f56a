package workqueue

import (
	"errors"
	"fmt"
)

// ErrShutDown is what Get returns once the queue is shut down and has nothing left to hand out.
// It takes the place of the second result of client-go's Get.
var ErrShutDown = errors.New("workqueue: shut down")

// DrainError says that a drain ended before the queue was empty, with how much left, and why: its Err is the error of
// the context, or ErrShutDown where ShutDown cut the drain short.
type DrainError struct {
	Ready      int // keys that nobody had taken
	Processing int // keys that had been taken and were not Done
	Err        error
}

// Error says how much was left, and why.
func (e *DrainError) Error() string {
	return fmt.Sprintf("workqueue: drain ended with %d keys ready and %d in work: %v", e.Ready, e.Processing, e.Err)
}

// Unwrap returns what ended the drain.
func (e *DrainError) Unwrap() error { return e.Err }
