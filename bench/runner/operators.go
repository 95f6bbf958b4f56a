package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/measure"
	"github.com/leatproject/leat/bench/operator/cronjob"
	"github.com/leatproject/leat/bench/subject"
	"github.com/leatproject/leat/testserver"
)

// operatorNames are the shapes of the CronJob operator, their labels, and the folders with their code.
var operatorNames = []struct {
	name, label string
	code        []string
}{
	{"controller-runtime", "controller-runtime", []string{"onruntime", "controller-runtime"}},
	{"leatcache", "controller-runtime, leat's cache", []string{"onruntime", "leatcache"}},
	{"leat", "leat", []string{"leat"}},
}

const (
	operatorPods     = 20_000
	operatorCronJobs = 10
	operatorIdle     = 10 * time.Second
	operatorRounds   = 2

	// The status of as many pods changes in each step, so that each shape keeps up. A busy machine does not reach the
	// number of events in the time; then fewer events count.
	operatorEvents  = 5_000
	operatorStep    = 10 * time.Millisecond
	operatorBatch   = 10
	operatorChanges = 30 * time.Second

	// An operator has processed the last event when it has used no processor time for operatorQuiet.
	operatorQuiet = time.Second
	operatorDrain = time.Minute
)

var (
	benchCronJobs = api.Resource{Group: cronjob.GroupVersion.Group, Version: "v1", Kind: "CronJob", Plural: "cronjobs", Namespaced: true}
	benchPods     = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
)

// operators measures the CronJob operator in three shapes, one process at a time: with no pods, and with operatorPods.
// The difference of the resident memory is what the pods cost.
func (r *run) operators(ctx context.Context) (_ *RowResult, err error) {
	row := &RowResult{
		Name: "operators", Title: "The CronJob operator of the kubebuilder tutorial, in three shapes",
		Columns: []string{"binary MB", "start ms", "start cpu s", "cpu us/event", "RSS MB", "bare RSS MB", "pods RSS MB", "busy RSS MB", "lines"},
		Note: fmt.Sprintf("Stripped binaries. The operator caches CronJobs, Jobs and all Pods, and counts the Pods of each CronJob. "+
			"A start ends when the caches have %d pods (seed %d, with managedFields); its processor time is that of the process until "+
			"%s later. Resident memory at that time, and that of the same program on a server without pods (bare). Then the status "+
			"of %d pods changes, %d in a second: the processor time of one event, over JSON, and the resident memory after "+
			"them (busy). leat's cache keeps bytes, drops managedFields, and returns the garbage of the first list; the "+
			"operator on leat decodes only the metadata of pods. controller-runtime has its defaults: with a cache of metadata, or "+
			"a transform that drops managedFields, it would need less. Lines have code. "+
			"The server is leat's test server, in the process of the bench.", operatorPods, load.Seed, operatorIdle,
			operatorEvents, operatorBatch*int(time.Second/operatorStep)),
	}
	for _, o := range operatorNames {
		entrant, err := r.buildOperator(ctx, o.name, o.label, o.code)
		if err != nil {
			return nil, err
		}
		row.Entrants = append(row.Entrants, entrant)
	}
	if r.Quick {
		row.Partial = map[string]bool{}
		for _, column := range row.Columns[1 : len(row.Columns)-1] {
			row.Partial[column] = true
		}
		return row, nil
	}
	empty, err := r.operatorServer(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, empty.stop()) }()
	full, err := r.operatorServer(ctx, operatorPods)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, full.stop()) }()
	for round := range operatorRounds {
		for i, o := range operatorNames {
			_, _ = fmt.Fprintf(r.Progress, "operators: %s, round %d of %d\n", o.label, round+1, operatorRounds)
			m, err := r.operatorRound(ctx, o.name, empty, full)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				row.Entrants[i].Failure = err.Error()
			}
			row.Entrants[i].add(m)
		}
	}
	return row, nil
}

// operatorRound measures a shape with both servers.
func (r *run) operatorRound(ctx context.Context, name string, empty, full *operatorHost) (subject.Metrics, error) {
	bare, err := r.operator(ctx, name, empty)
	if err != nil {
		return nil, err
	}
	m, err := r.operator(ctx, name, full)
	if err != nil {
		return nil, err
	}
	m["bare RSS MB"] = bare["RSS MB"]
	m["pods RSS MB"] = m["RSS MB"] - bare["RSS MB"]
	return m, nil
}

// buildOperator builds a shape, and counts its lines.
func (r *run) buildOperator(ctx context.Context, name, label string, code []string) (EntrantResult, error) {
	_, _ = fmt.Fprintf(r.Progress, "operators: building %s\n", name)
	if err := goBuild(ctx, r.Options, "operator-"+name, "./operator/"+name, "-ldflags=-s -w"); err != nil {
		return EntrantResult{}, err
	}
	info, err := os.Stat(filepath.Join(r.Binaries, "operator-"+name))
	if err != nil {
		return EntrantResult{}, err
	}
	lines := 0
	for _, folder := range code {
		n, err := linesOfCode(filepath.Join(r.Folder, "operator", folder))
		if err != nil {
			return EntrantResult{}, err
		}
		lines += n
	}
	return EntrantResult{Label: label, Rounds: map[string][]float64{
		"binary MB": {float64(info.Size()) / 1e6}, "lines": {float64(lines)},
	}}, nil
}

// linesOfCode returns the number of lines of a folder's Go files that are neither empty nor only a comment.
func linesOfCode(folder string) (n int, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err == nil && len(files) == 0 {
		err = errors.New("runner: no code in " + folder)
	}
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		if readErr != nil {
			return 0, readErr
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
	}
	return n, err
}

// operatorHost is a running server of operators.
type operatorHost struct {
	server *testserver.Server
	url    string
	pods   []api.Key
	stop   func() error
}

// operatorServer starts a server with CronJobs and a number of pods. The pods belong to the CronJobs in turn.
func (r *run) operatorServer(ctx context.Context, pods int) (*operatorHost, error) {
	s := testserver.New(testserver.Options{})
	h := &operatorHost{server: s}
	s.Define(testserver.Definition{Resource: benchCronJobs})
	for i := range operatorCronJobs {
		c := &cronjob.CronJob{}
		c.APIVersion, c.Kind = cronjob.GroupVersion.String(), benchCronJobs.Kind
		c.Namespace, c.Name = "default", fmt.Sprint("cron-", i)
		c.Spec.Every.Duration = time.Hour
		if _, err := s.Create(benchCronJobs, c); err != nil {
			return nil, err
		}
	}
	for i := range pods {
		var pod unstructured.Unstructured
		if err := json.Unmarshal(r.set.Append(nil, load.JSON, i, load.State{Version: load.FirstVersion}), &pod.Object); err != nil {
			return nil, err
		}
		if i%100 == 0 { // most pods of a cluster belong to others
			pod.SetNamespace("default")
			pod.SetLabels(map[string]string{cronjob.Label: fmt.Sprint("cron-", i/100%operatorCronJobs)})
		}
		pod.SetResourceVersion("")
		pod.SetUID("")
		if _, err := s.Create(benchPods, &pod); err != nil {
			return nil, err
		}
		h.pods = append(h.pods, api.KeyOf(&pod))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h.url = "http://" + l.Addr().String()
	_, h.stop = background(ctx, func(ctx context.Context) error { return s.Serve(ctx, l) })
	return h, nil
}

// change changes the status of operatorEvents pods at a steady pace, or of fewer that it reaches in operatorChanges. It
// returns their number.
func (h *operatorHost) change(ctx context.Context) (n int, err error) {
	tick := time.NewTicker(operatorStep)
	defer tick.Stop()
	for end := time.After(operatorChanges); n < operatorEvents; n++ {
		if n%operatorBatch == 0 {
			select {
			case <-tick.C:
			case <-end:
				return n, nil
			case <-ctx.Done():
				return n, ctx.Err()
			}
		}
		if _, err := h.server.Edit(benchPods, h.pods[n%len(h.pods)], func(u *unstructured.Unstructured) {
			if status, ok := u.Object["status"].(map[string]any); ok {
				status["message"] = fmt.Sprint("change ", u.GetResourceVersion())
			}
		}); err != nil {
			return n, err
		}
	}
	return n, nil
}

// quiet waits until a process has used no processor time for operatorQuiet, and returns its processor time.
func quiet(ctx context.Context, pid int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, operatorDrain)
	defer cancel()
	used, err := measure.CPU(pid)
	for err == nil {
		select {
		case <-time.After(operatorQuiet):
		case <-ctx.Done():
			return 0, fmt.Errorf("runner: the process still works %v after the last event: %w", operatorDrain, ctx.Err())
		}
		before := used
		if used, err = measure.CPU(pid); used-before <= quietTime {
			break
		}
	}
	return used, err
}

// quietTime is what an idle process may use in operatorQuiet: its timers.
const quietTime = 10 * time.Millisecond

// operator starts a shape, and measures it until operatorIdle after its caches have synchronized, and then while pods
// change.
func (r *run) operator(ctx context.Context, name string, host *operatorHost) (subject.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	var errs strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(r.Binaries, "operator-"+name), host.url)
	cmd.Env, cmd.Stderr = environment(), &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	m := subject.Metrics{"start ms": float64(time.Since(began).Microseconds()) / 1e3}
	if err == nil && line == "ready\n" {
		err = measureOperator(ctx, cmd.Process.Pid, host, m)
	}
	cancel()
	_ = cmd.Wait() // the operator is killed
	if err != nil || line != "ready\n" {
		return nil, fmt.Errorf("runner: operator %s said %q and %q: %w", name, line, errs.String(), err)
	}
	return m, nil
}

// measureOperator measures a process whose caches have just synchronized.
func measureOperator(ctx context.Context, pid int, host *operatorHost, m subject.Metrics) error {
	select {
	case <-time.After(operatorIdle):
	case <-ctx.Done():
		return ctx.Err()
	}
	rss, err := measure.RSS(pid)
	if err != nil {
		return err
	}
	started, err := measure.CPU(pid)
	if err != nil {
		return err
	}
	m["RSS MB"], m["start cpu s"] = float64(rss)/1e6, started.Seconds()
	if len(host.pods) == 0 {
		return nil
	}
	events, err := host.change(ctx)
	if err != nil {
		return err
	}
	ended, err := quiet(ctx, pid)
	if err != nil {
		return err
	}
	busy, err := measure.RSS(pid)
	m["cpu us/event"], m["busy RSS MB"] = float64((ended-started).Microseconds())/float64(events), float64(busy)/1e6
	return err
}
