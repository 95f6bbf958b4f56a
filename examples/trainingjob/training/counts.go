package training

import (
	"sync/atomic"

	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
)

// Counts are what has happened to jobs while this process watched over them. Whatever is counted was written into a status
// at the same moment, so that a process that comes later finds it there and does not count it again. The zero value is
// ready, and may be used from any goroutine.
// It corresponds to the jobs counters of kubeflow's training-operator.
type Counts struct {
	Created, Succeeded, Failed atomic.Int64 // jobs
	Restarted                  atomic.Int64 // replicas
}

// changed counts what has come true in a status.
func (c *Counts) changed(before, after job.Status) {
	for _, kind := range plan.BecameTrue(before, after) {
		switch kind {
		case job.Created:
			c.Created.Add(1)
		case job.Succeeded:
			c.Succeeded.Add(1)
		case job.Failed:
			c.Failed.Add(1)
		}
	}
	c.Restarted.Add(int64(max(after.Restarts-before.Restarts, 0)))
}
