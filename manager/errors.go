package manager

import (
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/internal/quote"
)

var (
	// ErrRunning is the error of a second call of Run.
	ErrRunning = errors.New("manager: Run was called before")
	// ErrStopped is the error of Add when the manager is ending or has ended.
	ErrStopped = errors.New("manager: stopped")
	// ErrTwice is the error of Add for a runnable that was added before and has not ended.
	ErrTwice = errors.New("manager: runnable was added before")
	// ErrNameTaken is the error of Add for a name that another runnable has.
	ErrNameTaken = errors.New("manager: two runnables cannot have one name")
	// ErrEnded is the failure of a server or a cache that ended without being stopped, because other runnables need it.
	ErrEnded = errors.New("manager: ended by itself, but other runnables need it")
	// ErrNotSynced matches every SyncError with errors.Is.
	ErrNotSynced = errors.New("manager: not synced")
	// ErrGracePeriod matches every GraceError with errors.Is.
	ErrGracePeriod = errors.New("manager: grace period exceeded")
)

// errGoexit is the failure of a runnable that ended its goroutine.
var errGoexit = errors.New("manager: runtime.Goexit was called")

// errEnding is the error of the readiness check while the manager is ending.
var errEnding = errors.New("manager: ending")

// errOver is the reason for the end of leadership if the Elector gives no reason.
var errOver = errors.New("manager: the elector ended the leader's context")

// SyncError is the error of Run if a runnable was not ready in time. It wraps the reason, if the runnable tells it, so
// that apierrors.IsForbidden, for instance, recognizes it.
type SyncError struct {
	Name    string
	Timeout time.Duration
	Err     error // the reason, if the runnable tells it; may be nil
}

// Error returns the name of the runnable and the reason.
func (e *SyncError) Error() string {
	text := fmt.Sprintf("manager: %s not synced after %v", e.Name, e.Timeout)
	if e.Err == nil {
		return text
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns the reason, which may be nil.
func (e *SyncError) Unwrap() error { return e.Err }

// Is reports whether target is ErrNotSynced.
func (e *SyncError) Is(target error) bool { return target == ErrNotSynced }

// GraceError is the error of Run if a runnable did not end in time. The runnable may still be running; the program
// should exit.
type GraceError struct {
	Names  []string // runnables that were stopped and did not end
	Period time.Duration
}

// Error returns up to ten names of the runnables that did not end, and the number of the others.
func (e *GraceError) Error() string {
	return fmt.Sprintf("manager: %s did not end within %v", quote.List(e.Names, ", "), e.Period)
}

// Is reports whether target is ErrGracePeriod.
func (e *GraceError) Is(target error) bool { return target == ErrGracePeriod }
