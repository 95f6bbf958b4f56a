package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/leatproject/leat/bench/subject"
)

// process is a subject that runs.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors strings.Builder
}

// launch starts a subject with one work. It ends after its work or with ctx.
func launch(ctx context.Context, binary string, s subject.Spec, env []string) (*process, error) {
	work, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, binary, string(work))}
	p.cmd.Env = append(environment(), env...)
	p.cmd.Stderr = &p.errors
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 1<<20)
	return p, p.cmd.Start()
}

// environment returns the environment of this process without variables that change a Go program or client-go.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GOGC=") && !strings.HasPrefix(v, "GOMEMLIMIT=") && !strings.HasPrefix(v, "GODEBUG=") &&
			!strings.HasPrefix(v, "GOMAXPROCS=") && !strings.HasPrefix(v, "KUBE_") {
			env = append(env, v)
		}
	}
	return env
}

// wait returns the report. It calls turn whenever the subject is ready.
func (p *process) wait(turn func() error) (*subject.Report, error) {
	report, err := p.read(turn)
	if err != nil {
		_ = p.cmd.Process.Kill() // it may be waiting for the runner
	}
	if ended := p.cmd.Wait(); err == nil && ended != nil {
		err = ended
	}
	if err == nil && report.Error != "" {
		err = errors.New(report.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("runner: %s: %w %s", p.cmd.Path, err, lastLines(p.errors.String(), 5))
	}
	return report, nil
}

func (p *process) read(turn func() error) (*subject.Report, error) {
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line != subject.Ready+"\n" {
			report := &subject.Report{}
			return report, json.Unmarshal([]byte(line), report)
		}
		// The subject continues at once, because it must receive what turn sends.
		if _, err := io.WriteString(p.in, "go on\n"); err != nil {
			return nil, err
		}
		if err := turn(); err != nil {
			return nil, err
		}
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// background runs a server until stop is called, which returns its error. ended gets the error if it ends earlier.
func background(ctx context.Context, run func(context.Context) error) (ended <-chan error, stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- run(ctx)
		close(done)
	}()
	return done, func() error {
		cancel()
		return <-done
	}
}

// inParallel calls do for the numbers below n, with several writers.
func inParallel(ctx context.Context, n, writers int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range n {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}
