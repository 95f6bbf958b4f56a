package manager

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrRunning is returned by Run when it has been called before.
	ErrRunning = errors.New("manager: Run was called before")
	// ErrStopped is returned by Add when the manager is ending, or has ended.
	ErrStopped = errors.New("manager: stopped")
	// ErrTwice is returned by Add for a runnable that is there already.
	ErrTwice = errors.New("manager: runnable was added before")
	// ErrNameTaken is returned by Add for a name that another runnable has.
	ErrNameTaken = errors.New("manager: two runnables cannot have one name")
	// ErrEnded is the failure of a runnable, of those that others rest on, that ended without being told to.
	ErrEnded = errors.New("manager: ended by itself, and others rest on it")
	// ErrNotSynced is what every SyncError is.
	ErrNotSynced = errors.New("manager: not synced")
	// ErrGracePeriod is what every GraceError is.
	ErrGracePeriod = errors.New("manager: grace period exceeded")
)

// errGoexit is the failure of a runnable that ended its goroutine.
var errGoexit = errors.New("manager: runtime.Goexit was called")

// errEnding is why a manager is not ready that is ending.
var errEnding = errors.New("manager: ending")

// errOver is why a replica leads no more whose Elector does not say.
var errOver = errors.New("manager: the elector ended the leader's context")

// SyncError is returned by Run when a runnable was not ready in time. It wraps why, where that is known, so that for
// instance apierrors.IsForbidden finds it.
type SyncError struct {
	Name    string
	Timeout time.Duration
	Err     error // why, as far as the runnable tells; may be nil
}

// Error names the runnable, and says why.
func (e *SyncError) Error() string {
	text := fmt.Sprintf("manager: %s not synced after %v", e.Name, e.Timeout)
	if e.Err == nil {
		return text
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns why.
func (e *SyncError) Unwrap() error { return e.Err }

// Is says that it is ErrNotSynced.
func (e *SyncError) Is(target error) bool { return target == ErrNotSynced }

// GraceError is returned by Run when something did not end in time. It may be running still: the program should end.
type GraceError struct {
	Names  []string // of what was told to end, and did not
	Period time.Duration
}

// Error names what did not end.
func (e *GraceError) Error() string {
	return fmt.Sprintf("manager: %s did not end within %v", strings.Join(e.Names, ", "), e.Period)
}

// Is says that it is ErrGracePeriod.
func (e *GraceError) Is(target error) bool { return target == ErrGracePeriod }

// PanicError is the error that a panic of a runnable is turned into. Only those of the goroutine that its Run is called
// on can be.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // of the goroutine that panicked
}

// Error is the value of the panic, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v [recovered]", e.Value) }
