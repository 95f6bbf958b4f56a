package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/leatproject/leat/internal/visible"
)

func main() {
	os.Exit(run(interruptible(), os.Args[1:], os.Stdout, os.Stderr))
}

// interruptible returns a context that the first interrupt ends. Before it ends, the process stops to catch signals, so
// that each later one ends the process at once, also while a command does not look at the context.
func interruptible() context.Context {
	first, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	context.AfterFunc(first, func() {
		stop()
		cancel(context.Cause(first))
	})
	return ctx
}

// run runs a command and returns the exit code: 0 for success, 1 for a failure, 2 for a wrong command line. An
// interrupt is a success, except for a command that still reads a recording. Commands print with package visible. The
// writers escape what comes another way, such as from the package of flags.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout = visible.Writer(&interruptibleWriter{w: stdout, interrupted: ctx.Done()})
	stderr = visible.Writer(&interruptibleWriter{w: stderr, interrupted: ctx.Done()})
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), isUnknownCommand(err):
		visible.Fprintf(stderr, "leat: %s\n", oneLine(err))
		return 2
	default:
		visible.Fprintf(stderr, "leat: %s\n", oneLine(err))
		return 1
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "leat",
		Short:         "Informers, workqueues and controllers for Kubernetes, without client-go",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newDemo(), newServe(), newWatch(), newRecord(), newReplay(), newShow(), newExplore())
	return root
}

// usageError is an error in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// noArgs is an argument check for cobra, with an error of one line.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, and got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// isUnknownCommand recognises cobra's error for an unknown command, which has no type of its own.
func isUnknownCommand(err error) bool { return strings.HasPrefix(err.Error(), "unknown command") }

// oneLine joins the lines of an error. A cause may have several lines, and cobra puts its suggestions on lines of their
// own.
func oneLine(err error) string {
	var b strings.Builder
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		switch text := b.String(); {
		case line == "":
			continue
		case strings.HasSuffix(text, "?"), strings.HasSuffix(text, ":"):
			b.WriteByte(' ')
		case text != "":
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return b.String()
}
