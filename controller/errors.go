package controller

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrRunning is returned by Run when it has been called before, for instance because a controller was given to a
	// manager twice.
	ErrRunning = errors.New("controller: Run was called before")
	// ErrStopped is the error of a source that was to be watched once Run had ended.
	ErrStopped = errors.New("controller: stopped")
	// ErrNotSynced is what every SyncError is.
	ErrNotSynced = errors.New("controller: source not synced")
	// ErrReconcileTimeout is the cause with which the context of a reconcile ends after Options.ReconcileTimeout.
	ErrReconcileTimeout = errors.New("controller: reconcile took too long")
)

// errGoexit is the error of a reconcile, or of a source, that ended its goroutine; a panic that nothing recovers does, too.
var errGoexit = errors.New("controller: it ended its goroutine, with runtime.Goexit or a panic")

// SyncError is returned by Run when a source is not synced in time, and by NotSynced meanwhile. It wraps what its list or watch failed with last,
// so that for instance apierrors.IsForbidden finds it.
type SyncError struct {
	Controller string
	Source     string
	Timeout    time.Duration // zero if it is not up
	Err        error         // why, as far as the source knows; may be nil
}

// Error names the controller and the source, and says why.
func (e *SyncError) Error() string {
	text := fmt.Sprintf("controller: %s: source %s not synced", e.Controller, e.Source)
	if e.Timeout > 0 {
		text += fmt.Sprintf(" after %v", e.Timeout)
	}
	if e.Err == nil {
		return text
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns why.
func (e *SyncError) Unwrap() error { return e.Err }

// Is says that it is ErrNotSynced.
func (e *SyncError) Is(target error) bool { return target == ErrNotSynced }
