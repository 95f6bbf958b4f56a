package exec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leatproject/leat/internal/visible"
)

// The reasons of an *Error. errors.Is finds them.
var (
	ErrNotFound      = errors.New("there is no such command")
	ErrNotAllowed    = errors.New("the policy of this program does not allow it to run")
	ErrNoTerminal    = errors.New("it cannot run without standard input")
	ErrNotStarted    = errors.New("it cannot be started")
	ErrFailed        = errors.New("it failed")
	ErrTimeout       = errors.New("it took too long")
	ErrTooMuchOutput = errors.New("it printed too much")
	ErrMalformed     = errors.New("what it printed is not an ExecCredential")
	ErrVersion       = errors.New("it answered in another version")
	ErrNoCredentials = errors.New("it gave neither a token nor a certificate")
	ErrCertificate   = errors.New("its certificate cannot be used")
	ErrExpired       = errors.New("its credentials have expired already")
)

// Error is the error of a plugin that gave no credentials. It has nothing of what the plugin printed, because that may
// be a secret. Terms.Stderr gets the standard error of the plugin.
type Error struct {
	// Command is the command of the plugin, as the kubeconfig has it.
	Command string
	// ExitCode is the exit code of a plugin that failed, or -1 if a signal ended it.
	ExitCode int
	// InstallHint is the hint of the kubeconfig, if the command does not exist.
	InstallHint string
	// Err is the reason: one of the errors above, with details.
	Err error
}

// Error returns one line: the command, the reason and the hint.
func (e *Error) Error() string {
	text := fmt.Sprintf("exec: credential plugin %s: %v", visible.Text(e.Command), e.Err)
	if e.InstallHint != "" {
		text += "; to install it: " + visible.Text(strings.Join(strings.Fields(e.InstallHint), " "))
	}
	return text
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
