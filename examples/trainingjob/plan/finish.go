package plan

import (
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/trainingjob/job"
)

// finish sets the condition for the end of the job. Deletions follow after this was written.
func (d *decision) finish(kind, reason, message string) {
	d.become(kind, reason, message)
	d.Status.CompletionTime = d.now()
	d.Status.Restarting = nil
	d.After = 0
}

// cleanUp deletes the Pods and Services of a finished job and, after its time to live, the job.
func (d *decision) cleanUp() {
	switch d.Job.Spec.CleanPodPolicy {
	case job.CleanNone:
	case job.CleanAll:
		d.deletePods(func(*Pod) bool { return true })
		d.deleteServices(d.Services)
	default: // an invalid job may have any value here
		d.deletePods(func(p *Pod) bool { return !over(p) })
		d.deleteServices(d.Services)
	}
	d.countEnds()
	if d.Status.CompletionTime == nil { // another client has finished the job
		d.Status.CompletionTime = d.now()
	}
	ttl := d.Job.Spec.TTLSecondsAfterFinished
	if ttl != nil && *ttl >= 0 {
		d.DeleteJob = d.due(d.Status.CompletionTime.Time, int64(*ttl))
	}
}

// countEnds counts the active Pods. The numbers of ended Pods stay as they were when the job finished, because those
// Pods may be deleted since.
func (d *decision) countEnds() {
	for t, s := range d.Status.Replicas {
		s.Active = 0
		for r, p := range d.pods.taken {
			if r.Type == t && active(p) {
				s.Active++
			}
		}
		d.Status.Replicas[t] = s
	}
}

// Fail returns the status and the notes of a job that failed for a reason that only a request to the server has shown.
func Fail(j *job.TrainingJob, now time.Time, reason, message string) (job.Status, []Note) {
	d := &decision{Observed: Observed{Job: j, Now: now}}
	d.Status = api.Clone(j.Status)
	d.finish(job.Failed, reason, message)
	return d.Status, d.Notes
}
