package runner

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/leatproject/leat/bench/measure"
	"github.com/leatproject/leat/bench/server"
	"github.com/leatproject/leat/bench/subject"
)

// agentNames are the measured programs, and their labels in the report.
var agentNames = []struct{ name, label string }{
	{"leat-struct", "leat, own struct"},
	{"leat-pod", "leat, corev1.Pod"},
	{"client-go", "client-go, corev1.Pod"},
	{"controller-runtime", "controller-runtime, corev1.Pod"},
	{"bare", "no library, the dependencies of leat"},
}

const (
	agentPods   = 100
	agentIdle   = time.Minute
	agentsAlike = 3 // processes of each program
)

// agents measures programs that watch pods: the size of their stripped binaries, and their memory after a minute
// without an event. Several of each are idle at the same time. A quick run skips the memory.
func (r *run) agents(ctx context.Context) (*RowResult, error) {
	row := &RowResult{
		Name: "agents", Title: "A program that watches pods", Columns: []string{"binary MB", "idle RSS MB"},
		Note: fmt.Sprintf("Stripped binaries (-trimpath -ldflags='-s -w'). Resident memory after a minute without an event, %d pods cached.", agentPods),
	}
	for _, a := range agentNames {
		_, _ = fmt.Fprintf(r.Progress, "agents: building %s\n", a.name)
		if err := goBuild(ctx, r.Options, "agent-"+a.name, "./agent/"+a.name, "-ldflags=-s -w"); err != nil {
			return nil, err
		}
		info, err := os.Stat(filepath.Join(r.Binaries, "agent-"+a.name))
		if err != nil {
			return nil, err
		}
		row.Entrants = append(row.Entrants, EntrantResult{Label: a.label, Rounds: map[string][]float64{"binary MB": {float64(info.Size()) / 1e6}}})
	}
	if r.Quick {
		row.Partial = map[string]bool{"idle RSS MB": true}
		return row, nil
	}
	return row, r.idle(ctx, row)
}

// idle starts all agents on one server, and reads their memory after a minute.
func (r *run) idle(ctx context.Context, row *RowResult) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := server.New(r.set, server.Options{Objects: agentPods})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	running := make([][]*exec.Cmd, len(agentNames))
	for range agentsAlike {
		for i, a := range agentNames {
			cmd, err := r.startAgent(ctx, a.name, s.URL())
			if err != nil {
				return err
			}
			running[i] = append(running[i], cmd)
		}
	}
	_, _ = fmt.Fprintf(r.Progress, "agents: idling for %s\n", agentIdle)
	select {
	case <-time.After(agentIdle):
	case <-ctx.Done():
		return ctx.Err()
	}
	for i, alike := range running {
		for _, cmd := range alike {
			rss, err := measure.RSS(cmd.Process.Pid)
			if err != nil {
				return err
			}
			row.Entrants[i].add(subject.Metrics{"idle RSS MB": float64(rss) / 1e6})
		}
	}
	cancel()
	for _, cmd := range slices.Concat(running...) {
		_ = cmd.Wait() // the agents are killed
	}
	return <-ended
}

// startAgent starts a program, and waits until it reports its number of pods.
func (r *run) startAgent(ctx context.Context, name, url string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(r.Binaries, "agent-"+name), url)
	cmd.Env = environment()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != fmt.Sprintf("%d pods\n", agentPods) {
		return nil, fmt.Errorf("runner: agent %s said %q: %w", name, line, err)
	}
	return cmd, nil
}
