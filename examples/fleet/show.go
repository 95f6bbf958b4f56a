package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/testserver"
)

var leases = api.Resource{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true}

// fleet is the replicas that run.
type fleet struct {
	o       options
	client  *apiclient.Client
	load    *load
	out     io.Writer
	all     []*process
	started int
	failed  chan error // of a replica that was not killed
}

// process is a replica.
type process struct {
	identity string
	cmd      *exec.Cmd
	killed   bool
	ended    chan struct{}
	seconds  float64 // of processor time, at the last look
}

// show starts the replicas, and prints their ranges once a second until ctx ends.
func show(ctx context.Context, o options, out io.Writer) (err error) {
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	if o.kubeconfig == "" {
		server, stop, err := serve()
		if err != nil {
			return err
		}
		defer stop()
		o.server = server
		fmt.Fprintln(out, "an API server in memory is at", server)
	}
	config, err := connection(ctx, o.server, o.kubeconfig)
	if err != nil {
		return err
	}
	f := &fleet{o: o, out: out, failed: make(chan error, 100)}
	if f.client, err = apiclient.New(config); err != nil {
		return err
	}
	f.load = newLoad(f.client, o.deployments, out)
	if err := f.load.create(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	cached := make(chan error, 1)
	go func() { cached <- f.load.cached.Run(ctx) }()
	defer func() { cancel(); err = errors.Join(err, <-cached) }()
	defer f.end(patience)
	for range o.replicas {
		if err := f.start(); err != nil {
			return err
		}
	}
	return f.watch(ctx)
}

// serve runs an API server in memory on a free port. It obeys the shardSelector.
func serve() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := testserver.New(testserver.Options{ShardedLists: true})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}, 2)
	go func() { _ = server.Run(ctx); ended <- struct{}{} }()
	go func() { _ = server.Serve(ctx, l); ended <- struct{}{} }()
	return "http://" + l.Addr().String(), func() { cancel(); <-ended; <-ended }, nil
}

// start starts a replica.
func (f *fleet) start() error {
	f.started++
	p := &process{identity: fmt.Sprintf("replica-%d", f.started), ended: make(chan struct{})}
	config, err := json.Marshal(replicaConfig{f.o.server, f.o.kubeconfig, f.o.namespace, p.identity, f.o.kubelet, f.o.page})
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(program)
	p.cmd.Env = append(os.Environ(), replicaVariable+"="+string(config))
	p.cmd.Stderr = os.Stderr
	if _, err := p.cmd.StdinPipe(); err != nil { // it closes with this process
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	f.follow(p)
	return nil
}

// follow waits for the end of a replica that runs.
func (f *fleet) follow(p *process) {
	f.all = append(f.all, p)
	go func() {
		defer close(p.ended)
		if err := p.cmd.Wait(); err != nil {
			f.failed <- fmt.Errorf("%s: %w", p.identity, err)
		}
	}()
}

// patience is the time in which a replica must end after the signal.
const patience = 10 * time.Second

// end ends the replicas, and kills those that do not end in time.
func (f *fleet) end(patience time.Duration) {
	for _, p := range f.all {
		_ = p.cmd.Process.Signal(os.Interrupt)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, p := range f.all {
		select {
		case <-p.ended:
		case <-ctx.Done():
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	}
}

// watch prints a picture each second, kills and starts.
func (f *fleet) watch(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	began := time.Now()
	for killing, joining, rolling := f.o.kill > 0, f.o.join > 0, f.o.rollout > 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case err := <-f.failed:
			if ctx.Err() != nil {
				return nil
			}
			if !slices.ContainsFunc(f.all, func(p *process) bool { return p.killed && strings.HasPrefix(err.Error(), p.identity+":") }) {
				return err
			}
		case <-tick.C:
		}
		passed := time.Since(began)
		if killing && passed >= f.o.kill {
			killing, f.all[0].killed = false, true
			fmt.Fprintln(f.out, "kill", f.all[0].identity)
			_ = f.all[0].cmd.Process.Kill() // it may have ended
		}
		if joining && passed >= f.o.join {
			joining = false
			if err := f.start(); err != nil {
				return err
			}
			fmt.Fprintln(f.out, "start", f.all[len(f.all)-1].identity)
		}
		if rolling && passed >= f.o.rollout {
			rolling = false
			if err := f.load.roll(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
		if err := f.print(ctx, passed); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// print prints the ranges of each replica that has a Lease.
func (f *fleet) print(ctx context.Context, passed time.Duration) error {
	members := map[string]hashrange.Set{}
	client := apiclient.NewTyped[*coordinationv1.Lease](f.client, leases, f.o.namespace)
	o := api.Options[*coordinationv1.Lease]{ListOptions: metav1.ListOptions{LabelSelector: "leatproject.github.io/shard-group=" + group}}
	_, err := client.List(ctx, o, func(l *coordinationv1.Lease) error {
		set, err := hashrange.Parse(l.Annotations["leatproject.github.io/shard-claims"])
		if l.Spec.HolderIdentity != nil {
			members[*l.Spec.HolderIdentity] = set
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(f.out, "%.0f s  %d of %d Deployments are rolled out\n", passed.Seconds(), f.load.done(), f.o.deployments)
	for _, p := range f.all {
		set, member := members[p.identity]
		if !member && p.killed {
			continue
		}
		fmt.Fprintf(f.out, "  %-11s |%s| %5.1f %%  %6d Deployments  %s\n", p.identity, bar(set), 100*set.Share(), f.load.in(set), p.costs())
	}
	return nil
}

// columns is the width of a bar, which stands for all hashes.
const columns = 64

// bar draws a set: a column is full if the set has the first hash of it.
func bar(set hashrange.Set) string {
	var b strings.Builder
	for n := range uint64(columns) {
		if set.Contains(n * (1 << 63 / columns * 2)) {
			b.WriteRune('█')
		} else {
			b.WriteRune('·')
		}
	}
	return b.String()
}

// costs returns the memory and the processor time of a replica.
func (p *process) costs() string {
	if p.killed {
		return "killed"
	}
	memory, seconds, err := usage(p.cmd.Process.Pid)
	if err != nil { // it has ended, or this is not Linux
		return "memory and CPU are unknown"
	}
	used := seconds - p.seconds
	p.seconds = seconds
	return fmt.Sprintf("%5.1f MB  %4.2f s of CPU, %3.0f %%", float64(memory)/1e6, seconds, 100*used)
}

// usage reads the resident memory in bytes and the processor time of a process.
func usage(pid int) (memory int64, seconds float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 22 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var user, system, pages int64
	if _, err := fmt.Sscan(strings.Join([]string{fields[11], fields[12], fields[21]}, " "), &user, &system, &pages); err != nil {
		return 0, 0, err
	}
	return pages * int64(os.Getpagesize()), float64(user+system) / 100, nil // USER_HZ is 100 on all platforms of Go
}
