package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"time"
)

const (
	// infoVariable is the variable with the request.
	infoVariable = "KUBERNETES_EXEC_INFO"
	// maxOutput limits the answer, in bytes. A token and a certificate have a few thousand each.
	maxOutput = 1 << 20
	// drain is how long another process may hold a plugin's output open after its end. Some plugins leave a daemon,
	// which inherits the output.
	drain = time.Second
)

// process is a run that has not started.
type process struct {
	path   string
	args   []string // the first is the command as written
	env    []string
	stdin  *os.File // nil unless the run is interactive
	stderr io.Writer
}

// prepare finds the command, checks the policy, and formats the request.
func (p *Plugin) prepare() (*process, error) {
	interactive, err := p.o.interactive(p.isTerminal)
	if err != nil {
		return nil, err
	}
	if p.o.Terms.Policy.Type == DenyAll { // also for a command that does not exist
		return nil, ErrNotAllowed
	}
	path, err := resolve(p.o.Command, p.o.Dir)
	if err != nil {
		return nil, err
	}
	if !p.o.Terms.Policy.allows(path) {
		return nil, fmt.Errorf("%w: it is %s", ErrNotAllowed, path)
	}
	info, err := p.o.info(interactive)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	pr := &process{path: path, args: append([]string{p.o.Command}, p.o.Args...), env: os.Environ(), stderr: p.o.Terms.Stderr}
	if pr.stderr == nil {
		pr.stderr = os.Stderr
	}
	for _, v := range p.o.Env {
		pr.env = append(pr.env, v.Name+"="+v.Value.Reveal())
	}
	pr.env = append(pr.env, infoVariable+"="+string(info)) // the last of two variables with one name wins
	if interactive {
		pr.stdin = p.o.Terms.Stdin
	}
	return pr, nil
}

// resolve returns the path of a command. A command with a separator is relative to dir; for others it searches PATH.
func resolve(command, dir string) (string, error) {
	if filepath.Base(command) != command && !filepath.IsAbs(command) {
		command = filepath.Join(dir, command)
	}
	path, err := osexec.LookPath(command)
	switch {
	case errors.Is(err, osexec.ErrDot):
		return "", fmt.Errorf("%w in PATH, except in the current folder, from which leat runs no plugin", ErrNotFound)
	case errors.Is(err, osexec.ErrNotFound) && filepath.Base(command) == command:
		return "", fmt.Errorf("%w in PATH", ErrNotFound)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s", ErrNotFound, command)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	return filepath.Abs(path)
}

// run starts a process and returns its standard output. When ctx ends, or if the output is too long, it kills the
// process and the children in its group.
func run(ctx context.Context, pr *process) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := osexec.CommandContext(ctx, pr.path)
	cmd.Args, cmd.Env, cmd.WaitDelay = pr.args, pr.env, drain
	out := &output{overflow: cancel}
	cmd.Stdout = out
	if pr.stdin != nil {
		// An interactive plugin talks to the user. It stays in the process group that may read from the terminal.
		cmd.Stdin, cmd.Stderr = pr.stdin, pr.stderr
		cmd.Cancel = func() error { return endGently(cmd.Process) }
	} else {
		cmd.Stderr = patient{pr.stderr}
		ownGroup(cmd)
	}
	err := cmd.Run()
	switch {
	case out.tooMuch:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooMuchOutput, maxOutput)
	case err == nil || errors.Is(err, osexec.ErrWaitDelay) && ctx.Err() == nil:
		return out.b.Bytes(), nil
	}
	return nil, failed(err)
}

func failed(err error) error {
	var exit *osexec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	return &Error{
		ExitCode: exit.ExitCode(), Err: fmt.Errorf("%w: %s; its standard error may have the reason", ErrFailed, exit.ProcessState),
	}
}

// output keeps the standard output of a process, up to maxOutput.
type output struct {
	b        bytes.Buffer
	tooMuch  bool
	overflow func()
}

func (o *output) Write(p []byte) (int, error) {
	if o.tooMuch || o.b.Len()+len(p) > maxOutput {
		o.tooMuch = true
		o.overflow()
		return len(p), nil // an error would only make the process wait for a reader
	}
	return o.b.Write(p)
}

// patient is a standard error whose failure does not fail the plugin.
type patient struct{ io.Writer }

func (p patient) Write(text []byte) (int, error) {
	_, _ = p.Writer.Write(text)
	return len(text), nil
}
