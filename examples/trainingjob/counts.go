package main

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/examples/trainingjob/training"
)

// countJobs returns counts whose values r exports as metrics.
func countJobs(r prometheus.Registerer) (*training.Counts, error) {
	counts := &training.Counts{}
	var err error
	for _, c := range []struct {
		name, help string
		from       *atomic.Int64
	}{
		{"trainingjob_created_total", "Jobs that were created.", &counts.Created},
		{"trainingjob_succeeded_total", "Jobs that have succeeded.", &counts.Succeeded},
		{"trainingjob_failed_total", "Jobs that have failed.", &counts.Failed},
		{"trainingjob_replica_restarts_total", "Replicas that were replaced.", &counts.Restarted},
	} {
		err = errors.Join(err, r.Register(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: c.name, Help: c.help}, func() float64 { return float64(c.from.Load()) },
		)))
	}
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return counts, nil
}
