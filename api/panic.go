package api

import (
	"fmt"
	"runtime/debug"
)

// PanicError is the error of code that leat calls and that panicked: a reconcile, a runnable, an index function.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // of the goroutine that panicked
}

// Recovered makes an error from a value that recover returned. The deferred function that recovers must call it, so
// that the stack is that of the panic.
func Recovered(value any) *PanicError { return &PanicError{Value: value, Stack: debug.Stack()} }

// Error returns the value of the panic, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v [recovered]", e.Value) }
