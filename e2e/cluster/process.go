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

// logTail is the number of log lines in an error.
const logTail = 30

// process is a server that runs as a child process.
type process struct {
	name string
	log  string // the file for its output
	cmd  *exec.Cmd
	done chan struct{} // closed after it has ended
}

// startProcess starts a server and appends its output to the file log.
func startProcess(path, log string, args []string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{name: filepath.Base(path), log: log, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = []string{} // the server must not get ETCD_*, proxies and the like
	p.cmd.SysProcAttr = diesWithUs()

	started := make(chan error)
	go p.hold(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// hold starts the process and waits for it on one thread. The kernel sends the parent-death signal when the thread that
// forked ends. Go's scheduler may end a thread long before the process ends.
func (p *process) hold(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	_ = p.cmd.Wait() // the end of a killed server does not matter; the log has the reason of any other end
	close(p.done)
}

// kill kills the process with SIGKILL and waits until it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if the process has already ended
	<-p.done
}

// await calls ready every 50 ms until it returns nil. If the process or the context ends, or after startLimit, await
// returns the last error of ready with the end of the log.
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

// tail returns the last lines of a file, or the error of reading it.
func tail(file string, lines int) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
