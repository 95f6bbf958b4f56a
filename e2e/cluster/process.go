package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// logTail is how many lines of a server's log an error shows.
const logTail = 30

// process is a server that runs as a child.
type process struct {
	name string
	log  string // the file that its output is appended to
	cmd  *exec.Cmd
	done chan struct{} // closed when it is gone
}

// startProcess starts a server whose output is appended to the file log.
func startProcess(path, log string, args []string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{name: filepath.Base(path), log: log, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = []string{} // ETCD_*, proxies and the like are not to reach it
	p.cmd.SysProcAttr = diesWithUs()

	started := make(chan error)
	go p.hold(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// hold starts the process and waits for it on one thread: the kernel sends the parent-death signal when the thread
// that forked ends, which for a thread of Go's scheduler may be long before the process does.
func (p *process) hold(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	_ = p.cmd.Wait() // how a killed server ended is of no interest; one that ended by itself is in its log
	close(p.done)
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it fails only if the process is gone already
	<-p.done
}

// await asks, each 50 ms, until ready returns nil. It fails with what ready said last and the end of the log when the
// process ends, the context does, or startLimit has passed.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %s", startLimit))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return p.failure(fmt.Errorf("it ended: %s", p.cmd.ProcessState))
		case <-ctx.Done():
			return p.failure(errors.Join(context.Cause(ctx), err))
		}
	}
}

func (p *process) failure(err error) error {
	return fmt.Errorf("cluster: start %s: %w; its log ends with\n%s", p.name, err, tail(p.log, logTail))
}

// tail returns the last lines of a file, or why it cannot be read.
func tail(file string, lines int) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
