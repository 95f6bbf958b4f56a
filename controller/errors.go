package controller

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrRunning is the error of a second call of Run, for instance if a controller was added to a manager twice.
	ErrRunning = errors.New("controller: Run was called before")
	// ErrStopped is the error of a source that is watched after Run has ended.
	ErrStopped = errors.New("controller: stopped")
	// ErrNotSynced matches every SyncError with errors.Is.
	ErrNotSynced = errors.New("controller: source not synced")
	// ErrReconcileTimeout is the cause with which the context of a reconcile ends after Options.ReconcileTimeout.
	ErrReconcileTimeout = errors.New("controller: reconcile took too long")
)

// errGoexit is the error of a reconcile or a source that ended its goroutine. A panic that nothing recovers ends it
// too.
var errGoexit = errors.New("controller: the function ended its goroutine with runtime.Goexit or a panic")

// SyncError is the error of Run if a source is not synced in time, and of NotSynced before that. It wraps the last
// error of the source's list or watch, so that apierrors.IsForbidden, for instance, recognizes it.
type SyncError struct {
	Controller string
	Source     string
	Timeout    time.Duration // zero before the timeout
	Err        error         // the reason, if the source knows it; may be nil
}

// Error returns the names of the controller and the source, and the reason.
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

// Unwrap returns the reason, which may be nil.
func (e *SyncError) Unwrap() error { return e.Err }

// Is reports whether target is ErrNotSynced.
func (e *SyncError) Is(target error) bool { return target == ErrNotSynced }
