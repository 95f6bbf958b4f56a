package main

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/metrics"
)

// shown is what Prometheus is shown: what the parts of the program do, and what has become of jobs.
type shown struct {
	*metrics.Metrics
	registry *prometheus.Registry
	counts   *training.Counts
}

func newShown() (*shown, error) {
	s := &shown{registry: prometheus.NewRegistry(), counts: &training.Counts{}}
	var err error
	s.Metrics, err = metrics.New(s.registry)
	for _, c := range []struct {
		name, help string
		from       *atomic.Int64
	}{
		{"trainingjob_created_total", "Jobs that were seen for the first time.", &s.counts.Created},
		{"trainingjob_succeeded_total", "Jobs that have succeeded.", &s.counts.Succeeded},
		{"trainingjob_failed_total", "Jobs that have failed.", &s.counts.Failed},
		{"trainingjob_replica_restarts_total", "Restarts of replicas that were replaced.", &s.counts.Restarted},
	} {
		err = errors.Join(err, s.registry.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: c.name, Help: c.help}, func() float64 { return float64(c.from.Load()) },
		)))
	}
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return s, nil
}
