package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Reconciler makes the world look as one object says.
// It corresponds to TypedReconciler of controller-runtime.
type Reconciler[K comparable] interface {
	// Reconcile looks up what key names, compares it with what there is, and takes the next steps. It is told neither
	// what happened nor how often: it must come to the same end from any state, so it may be called again at any time.
	// It is never called for one key twice at once. ctx ends when the controller is told to, or takes too long.
	//
	// An error makes it be called again, later each time; see TerminalError for one that does not.
	Reconcile(ctx context.Context, key K) (Result, error)
}

// Func is a Reconciler that is a function.
type Func[K comparable] func(ctx context.Context, key K) (Result, error)

// Reconcile calls f.
func (f Func[K]) Reconcile(ctx context.Context, key K) (Result, error) { return f(ctx, key) }

// Result says what a reconcile wants next. The zero value wants nothing: the key is forgotten until something happens.
// It corresponds to Result of controller-runtime. There is no Requeue: who wants to be called again at once returns an
// error, or a short RequeueAfter.
type Result struct {
	// RequeueAfter is when to reconcile again, unless something happens before. It also forgets earlier failures. Zero
	// or less is not at all. Beside an error it is ignored.
	RequeueAfter time.Duration
	// Priority, if not zero, is that of the key when it is added again, after a failure too. Zero keeps the one it had.
	Priority int
}

// ErrTerminal is what every error made by TerminalError is.
var ErrTerminal = errors.New("controller: not worth a retry")

// TerminalError returns an error that no retry will mend, because the object itself is wrong: the reconcile is counted
// as failed and not tried again until something happens. The backoff of earlier failures is remembered. It wraps err,
// and is nil if err is.
// It corresponds to TerminalError of controller-runtime.
func TerminalError(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

type terminalError struct{ err error }

func (e *terminalError) Error() string { return "terminal error: " + e.err.Error() }

// Unwrap returns what was called terminal.
func (e *terminalError) Unwrap() error { return e.err }

// Is says that it is ErrTerminal.
func (e *terminalError) Is(target error) bool { return target == ErrTerminal }

// PanicError is the error that a panic of a reconcile, or of a source, is turned into. A reconcile is retried after it,
// even if the value of the panic is a TerminalError.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // of the goroutine that panicked
}

// Error is the value of the panic, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v [recovered]", e.Value) }

// recovered makes an error of what was recovered. It is called by the deferred function that did, so that the stack is
// that of the panic.
func recovered(p any) *PanicError { return &PanicError{Value: p, Stack: debug.Stack()} }
