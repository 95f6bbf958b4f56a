package training

import (
	"sync/atomic"

	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
)

// Counts counts events in the lives of jobs since the start of this process. Each count belongs to a change of a status
// that this process has written, so a later process does not count it again. The zero value is ready, and may be used
// on any goroutine. It corresponds to the job counters of kubeflow's training-operator.
type Counts struct {
	Created, Succeeded, Failed atomic.Int64 // jobs
	Restarted                  atomic.Int64 // replicas
}

// changed counts the conditions that became true and the restarts between two statuses.
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
