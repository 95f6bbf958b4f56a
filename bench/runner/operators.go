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
	operatorIdle     = 20 * time.Second
	operatorRounds   = 2
)

var (
	benchCronJobs = api.Resource{Group: cronjob.GroupVersion.Group, Version: "v1", Kind: "CronJob", Plural: "cronjobs", Namespaced: true}
	benchPods     = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
)

// operators measures the CronJob operator in three shapes, one process at a time: with no pods, and with operatorPods.
// The difference of the resident memory is what the pods cost.
func (r *run) operators(ctx context.Context) (*RowResult, error) {
	row := &RowResult{
		Name: "operators", Title: "The CronJob operator of the kubebuilder tutorial, in three shapes",
		Columns: []string{"binary MB", "start ms", "start cpu s", "RSS MB", "bare RSS MB", "pods RSS MB", "lines"},
		Note: fmt.Sprintf("Stripped binaries. The operator caches CronJobs, Jobs and all Pods, and counts the Pods of each CronJob. "+
			"A start ends when the caches have %d pods (seed %d, with managedFields); its processor time is that of the process until "+
			"%s later. Resident memory at that time, and that of the same program on a server without pods (bare). leat's cache keeps "+
			"bytes and drops managedFields; the operator on leat decodes only the metadata of pods. Lines have code. "+
			"The server is leat's test server, in the process of the bench.", operatorPods, load.Seed, operatorIdle),
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
		for _, column := range row.Columns[1:6] {
			row.Partial[column] = true
		}
		return row, nil
	}
	host, stop, err := r.operatorServer(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer stop()
	full, stopFull, err := r.operatorServer(ctx, operatorPods)
	if err != nil {
		return nil, err
	}
	defer stopFull()
	for round := range operatorRounds {
		for i, o := range operatorNames {
			_, _ = fmt.Fprintf(r.Progress, "operators: %s, round %d of %d\n", o.label, round+1, operatorRounds)
			bare, err := r.operator(ctx, o.name, host)
			if err != nil {
				return nil, err
			}
			m, err := r.operator(ctx, o.name, full)
			if err != nil {
				return nil, err
			}
			m["bare RSS MB"] = bare["RSS MB"]
			m["pods RSS MB"] = m["RSS MB"] - bare["RSS MB"]
			row.Entrants[i].add(m)
		}
	}
	return row, nil
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

// operatorServer starts a server with CronJobs and a number of pods. The pods belong to the CronJobs in turn.
func (r *run) operatorServer(ctx context.Context, pods int) (host string, stop func(), err error) {
	s := testserver.New(testserver.Options{})
	s.Define(testserver.Definition{Resource: benchCronJobs})
	for i := range operatorCronJobs {
		c := &cronjob.CronJob{}
		c.APIVersion, c.Kind = cronjob.GroupVersion.String(), benchCronJobs.Kind
		c.Namespace, c.Name = "default", fmt.Sprint("cron-", i)
		c.Spec.Every.Duration = time.Hour
		if _, err := s.Create(benchCronJobs, c); err != nil {
			return "", nil, err
		}
	}
	for i := range pods {
		var pod unstructured.Unstructured
		if err := json.Unmarshal(r.set.Append(nil, load.JSON, i, load.State{Version: load.FirstVersion}), &pod.Object); err != nil {
			return "", nil, err
		}
		if i%100 == 0 { // most pods of a cluster belong to others
			pod.SetNamespace("default")
			pod.SetLabels(map[string]string{cronjob.Label: fmt.Sprint("cron-", i/100%operatorCronJobs)})
		}
		pod.SetResourceVersion("")
		pod.SetUID("")
		if _, err := s.Create(benchPods, &pod); err != nil {
			return "", nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return "http://" + l.Addr().String(), func() { cancel(); <-ended }, nil
}

// operator starts a shape, and measures it until operatorIdle after its caches have synchronized.
func (r *run) operator(ctx context.Context, name, host string) (subject.Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	var errs strings.Builder
	cmd := exec.CommandContext(ctx, filepath.Join(r.Binaries, "operator-"+name), host)
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
	if err == nil {
		select {
		case <-time.After(operatorIdle):
		case <-ctx.Done():
		}
		var rss uint64
		rss, err = measure.RSS(cmd.Process.Pid)
		m["RSS MB"] = float64(rss) / 1e6
	}
	cancel()
	_ = cmd.Wait() // the operator is killed
	if err != nil || line != "ready\n" {
		return nil, fmt.Errorf("runner: operator %s said %q and %q: %w", name, line, errs.String(), err)
	}
	m["start cpu s"] = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return m, nil
}
