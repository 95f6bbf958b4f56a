package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/server"
	"github.com/leatproject/leat/bench/subject"
)

// turnWithServer runs one turn of an entrant with its own server.
func (r *run) turnWithServer(ctx context.Context, row *Row, e Entrant) (metrics subject.Metrics, err error) {
	set := r.set
	if e.Spec.Fresh {
		if r.fresh == nil {
			r.fresh = load.NewFreshSet(load.Seed, load.Workloads)
		}
		set = r.fresh
	}
	s, err := server.New(set, server.Options{Objects: e.Spec.Objects, TLS: row.TLS, Shards: e.Cuts})
	if err != nil {
		return nil, err
	}
	_, stop := background(ctx, s.Run)
	defer func() { err = errors.Join(err, stop()) }()
	e.Spec.URL, e.Spec.CA = s.URL(), s.Authority()
	pods := r.changes(&e.Spec)
	p, err := launch(ctx, filepath.Join(r.Binaries, e.Program), e.Spec, e.Env)
	if err != nil {
		return nil, err
	}
	report, err := p.wait(func() error { return act(ctx, s, e, pods) })
	if err != nil {
		return nil, err
	}
	if err := checkWire(s.Requests(), e.Spec, row.TLS); err != nil {
		return nil, err
	}
	if err := checkCut(s.Requests(), e.Cuts); err != nil {
		return nil, err
	}
	addWire(report.Metrics, s.Requests())
	if report.Arrivals != nil {
		latency(report, s.Sent())
	}
	return report.Metrics, nil
}

// changes returns the pods that change, in order.
func (r *run) changes(s *subject.Spec) []int {
	pods := make([]int, s.Events)
	random := rand.New(rand.NewPCG(load.Seed, uint64(len(pods))))
	for i := range pods {
		pods[i] = random.IntN(s.Objects)
		if i > 0 && pods[i] == pods[i-1] { // a queue would merge two changes of one pod
			pods[i] = (pods[i] + 1) % s.Objects
		}
	}
	if s.Work == subject.Shard {
		pods[len(pods)-1] = r.divide(s)
	}
	return pods
}

// act does the server's part after the subject is ready.
func act(ctx context.Context, s *server.Server, e Entrant, pods []int) error {
	switch {
	case e.Spec.Work == subject.Latency, e.Spec.Work == subject.Reconcile:
		return s.ChangeEvery(ctx, 2*time.Millisecond, pods)
	case e.Single:
		return s.ChangeEvery(ctx, 200*time.Microsecond, pods)
	case e.Spec.Work == subject.Events, e.Spec.Work == subject.Shard:
		s.Change(pods...)
	case e.Spec.Work == subject.Relist:
		return relist(ctx, s)
	}
	return nil
}

// relist ends the watch with 410, waits until the following list has been read, and changes one object.
func relist(ctx context.Context, s *server.Server) error {
	watches := 0
	for _, r := range s.Requests() {
		if r.Watch {
			watches++
		}
	}
	s.Expire()
	if err := s.AwaitWatches(ctx, watches+1); err != nil {
		return err
	}
	s.Change(0)
	return nil
}

// checkWire checks that a subject used the encoding of its row.
func checkWire(requests []server.Request, s subject.Spec, tls bool) error {
	proto := "HTTP/1.1"
	if tls {
		proto = "HTTP/2.0"
	}
	for _, q := range requests {
		switch {
		case q.Proto != proto:
			return fmt.Errorf("runner: the subject spoke %s and should have spoken %s", q.Proto, proto)
		case s.Wire != "" && q.Protobuf != (s.Wire == subject.Protobuf):
			return fmt.Errorf("runner: the subject did not ask for %s", s.Wire)
		case q.Metadata != (s.Form == subject.Metadata):
			return fmt.Errorf("runner: the subject asked for metadata %t, and its form is %s", q.Metadata, s.Form)
		}
	}
	return nil
}

// addWire adds what the subject chose itself.
func addWire(m subject.Metrics, requests []server.Request) {
	for _, q := range requests {
		m["protobuf"] = boolean(q.Protobuf)
		m["streaming"] = max(m["streaming"], boolean(q.Streaming))
		m["lists"] += boolean(!q.Watch)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// latency adds the percentiles of the time from the server to the handler.
func latency(report *subject.Report, sent map[uint64]int64) {
	var took []float64
	for version, at := range report.Arrivals {
		v, err := strconv.ParseUint(version, 10, 64)
		if err == nil && sent[v] > 0 {
			took = append(took, float64(at-sent[v])/1e3)
		}
	}
	slices.Sort(took)
	if len(took) > 0 {
		for name, part := range map[string]int{"p50 us": 500, "p90 us": 900, "p99 us": 990, "p99.9 us": 999} {
			report.Metrics[name] = took[len(took)*part/1000]
		}
	}
}
