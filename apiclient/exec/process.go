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
	"strings"
	"time"
)

const (
	// infoVariable is where a plugin finds what it is asked.
	infoVariable = "KUBERNETES_EXEC_INFO"
	// maxOutput bounds the answer, in bytes. A token is a few thousand, and so is a certificate.
	maxOutput = 1 << 20
	// stderrKept is how many bytes are kept of the beginning of standard error, and of its end.
	stderrKept = 2 << 10
	// drain is how long somebody else may hold a plugin's output open after its end: some plugins leave a daemon behind,
	// which inherits it.
	drain = time.Second
)

// process is one run to be.
type process struct {
	path  string
	args  []string // with the command as written at their beginning
	env   []string
	stdin *os.File // nil unless the run is interactive

	stderr  io.Writer // nil to show nobody
	secrets []string  // what is taken out of stderr before it is quoted
}

// prepare finds the command, asks whether it may run, and writes down what the plugin is asked.
func (p *Plugin) prepare() (*process, error) {
	interactive, err := p.o.interactive(p.isTerminal)
	if err != nil {
		return nil, err
	}
	if p.o.Terms.Policy.Type == DenyAll { // even one that does not exist
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
	for _, v := range p.o.Env {
		pr.env = append(pr.env, v.Name+"="+v.Value.Reveal())
		pr.secrets = append(pr.secrets, v.Value.Reveal())
	}
	pr.secrets = append(pr.secrets, secretsOf(p.o.Args)...)
	pr.secrets = append(pr.secrets, inheritedSecrets(os.Environ())...)
	if c := p.o.Cluster; c != nil && c.ProxyURL != nil {
		if password, ok := c.ProxyURL.User.Password(); ok {
			pr.secrets = append(pr.secrets, password)
		}
	}
	pr.env = append(pr.env, infoVariable+"="+string(info)) // of two of one name the last counts
	if interactive {
		pr.stdin = p.o.Terms.Stdin
		if pr.stderr == nil {
			pr.stderr = os.Stderr
		}
	}
	return pr, nil
}

// resolve returns the path of a command: one with a separator is relative to dir, others are looked for in PATH.
func resolve(command, dir string) (string, error) {
	if filepath.Base(command) != command && !filepath.IsAbs(command) {
		command = filepath.Join(dir, command)
	}
	path, err := osexec.LookPath(command)
	switch {
	case errors.Is(err, osexec.ErrDot):
		return "", fmt.Errorf("%w in PATH but for one in the current folder, which is not run", ErrNotFound)
	case errors.Is(err, osexec.ErrNotFound) && filepath.Base(command) == command:
		return "", fmt.Errorf("%w in PATH", ErrNotFound)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s", ErrNotFound, command)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	return filepath.Abs(path)
}

// run starts a process and returns what it prints. It ends the process, and the children that stayed in its group, when ctx ends or
// when it prints too much.
func run(ctx context.Context, pr *process) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := osexec.CommandContext(ctx, pr.path)
	cmd.Args, cmd.Env, cmd.WaitDelay = pr.args, pr.env, drain
	out := &output{overflow: cancel}
	cmd.Stdout = out
	said := &excerpt{also: pr.stderr}
	if pr.stdin != nil {
		// It talks to the user, who reads what it writes, and it stays in the group that may read from the terminal.
		cmd.Stdin, cmd.Stderr = pr.stdin, pr.stderr
		cmd.Cancel = func() error { return endGently(cmd.Process) }
	} else {
		cmd.Stderr = said
		ownGroup(cmd)
	}
	err := cmd.Run()
	switch {
	case out.tooMuch:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooMuchOutput, maxOutput)
	case err == nil || errors.Is(err, osexec.ErrWaitDelay) && ctx.Err() == nil:
		return out.b.Bytes(), nil
	}
	return nil, pr.explain(err, said)
}

func (pr *process) explain(err error, said *excerpt) error {
	var exit *osexec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	return &Error{
		ExitCode: exit.ExitCode(), Stderr: said.text(pr.secrets),
		Err: fmt.Errorf("%w: %s", ErrFailed, exit.ProcessState),
	}
}

// output keeps what a process prints, up to a bound.
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

// excerpt keeps the beginning of what is written to it, and the end.
type excerpt struct {
	also       io.Writer
	head, tail []byte
	cut        bool // something is missing between them
}

func (e *excerpt) Write(p []byte) (int, error) {
	if e.also != nil {
		_, _ = e.also.Write(p) // the plugin is not to fail because nobody can read what it says
	}
	rest := p
	if room := stderrKept - len(e.head); room > 0 {
		n := min(room, len(rest))
		e.head, rest = append(e.head, rest[:n]...), rest[n:]
	}
	e.tail = append(e.tail, rest...)
	if over := len(e.tail) - stderrKept; over > 0 {
		e.tail, e.cut = append(e.tail[:0], e.tail[over:]...), true
	}
	return len(p), nil
}

// text is the first three lines and the last, which is where many runtimes say what went wrong.
func (e *excerpt) text(secrets []string) string {
	head, tail := string(e.head), string(e.tail)
	if e.cut { // and so neither may have half a line, with half a secret
		head = head[:strings.LastIndexByte(head, '\n')+1]
		_, tail, _ = strings.Cut(tail, "\n")
	}
	text := redact(head+tail, secrets)
	var lines []string
	for line := range strings.Lines(printable(text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if n := len(lines); n > 4 {
		lines = []string{lines[0], lines[1], lines[2], "…", lines[n-1]}
	}
	for i, line := range lines {
		if r := []rune(line); len(r) > 200 {
			lines[i] = string(r[:200]) + "…"
		}
	}
	return strings.Join(lines, "\n")
}
