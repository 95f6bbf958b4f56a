package controller

import (
	"context"
	"errors"
	"time"
)

// Reconciler brings the world into the state that one object requests. It corresponds to TypedReconciler of
// controller-runtime.
type Reconciler[K comparable] interface {
	// Reconcile looks up the object that key names, compares it with the world, and takes the next steps. It does not
	// learn what happened or how often. It must reach the same result from any state, so the controller may call it
	// again at any time. The controller never calls it twice at once for one key. ctx ends when the controller ends or
	// the reconcile takes too long.
	//
	// After an error the controller calls it again, later each time; TerminalError prevents that.
	Reconcile(ctx context.Context, key K) (Result, error)
}

// Func is a function that implements Reconciler.
type Func[K comparable] func(ctx context.Context, key K) (Result, error)

// Reconcile calls f.
func (f Func[K]) Reconcile(ctx context.Context, key K) (Result, error) { return f(ctx, key) }

// Result tells when to reconcile again. The zero value requests nothing: the key is forgotten until the next event. It
// corresponds to Result of controller-runtime. It has no Requeue; return an error or a short RequeueAfter to reconcile
// again soon.
type Result struct {
	// RequeueAfter is when to reconcile again, unless an event comes earlier. It also resets the failures of the key.
	// Zero or less means no requeue. It is ignored if there is an error.
	RequeueAfter time.Duration
	// Priority is the key's new priority when it is added again, also after a failure. Zero keeps the old priority.
	Priority int
}

// ErrTerminal matches every error of TerminalError with errors.Is.
var ErrTerminal = errors.New("controller: terminal error")

// TerminalError wraps an error that no retry can fix, for instance because the object is invalid. The reconcile counts
// as failed, and the key is not tried again until the next event. The backoff keeps the earlier failures. TerminalError
// returns nil if err is nil. It corresponds to TerminalError of controller-runtime.
func TerminalError(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

type terminalError struct{ err error }

func (e *terminalError) Error() string { return "terminal error: " + e.err.Error() }

// Unwrap returns the wrapped error.
func (e *terminalError) Unwrap() error { return e.err }

// Is reports whether target is ErrTerminal.
func (e *terminalError) Is(target error) bool { return target == ErrTerminal }
