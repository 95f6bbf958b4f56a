package exec

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// What can go wrong with a plugin. Each is found in an *Error by errors.Is.
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

// Error says which plugin did not give credentials and why. Nothing of what the plugin printed to standard output is in
// it. The first lines that it wrote to standard error are, as they are what its author wanted the user to read. Values of
// the variables that the kubeconfig gives it are taken out of them, in every usual encoding, and so are arguments and
// inherited variables that are secrets by their names, values behind such names, and long texts that look random.
type Error struct {
	// Command is the plugin's, as the kubeconfig has it.
	Command string
	// ExitCode is that of a plugin that failed, or -1 if a signal ended it.
	ExitCode int
	// Stderr is the beginning of what a plugin without the terminal wrote, and its last line.
	Stderr string
	// InstallHint is the kubeconfig's, where the command does not exist.
	InstallHint string
	// Err is the reason: one of the errors above, with details.
	Err error
}

// Error is one line: the command, the reason and what helps.
func (e *Error) Error() string {
	text := fmt.Sprintf("exec: credential plugin %s: %v", printable(e.Command), e.Err)
	if e.Stderr != "" {
		text += ": " + oneLine(e.Stderr)
	}
	if e.InstallHint != "" {
		text += "; to install it: " + oneLine(e.InstallHint)
	}
	return text
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// printable drops what could do something to a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
