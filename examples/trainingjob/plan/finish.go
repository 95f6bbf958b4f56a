package plan

import (
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/trainingjob/job"
)

// finish says how the job has ended. Nothing is deleted yet: that waits until this is written.
func (d *decision) finish(kind, reason, message string) {
	d.become(kind, reason, message)
	d.Status.CompletionTime = d.now()
	d.Status.Restarting = nil
	d.After = 0
}

// cleanUp deletes what a job leaves that has finished and, after a time, the job.
func (d *decision) cleanUp() {
	switch d.Job.Spec.CleanPodPolicy {
	case job.CleanNone:
	case job.CleanAll:
		d.deletePods(func(*Pod) bool { return true })
		d.deleteServices(d.Services)
	default: // a job that is not valid may ask for anything
		d.deletePods(func(p *Pod) bool { return !over(p) })
		d.deleteServices(d.Services)
	}
	d.countEnds()
	if d.Status.CompletionTime == nil { // somebody else has finished the job
		d.Status.CompletionTime = d.now()
	}
	ttl := d.Job.Spec.TTLSecondsAfterFinished
	if ttl != nil && *ttl >= 0 {
		d.DeleteJob = d.due(d.Status.CompletionTime.Time, int64(*ttl))
	}
}

// countEnds counts the Pods that are still active. How the others ended is told as it was when the job finished, whatever
// has been deleted since.
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

// Fail is the status of a job that cannot go on, for a reason that only an attempt has shown, and what to tell of it.
func Fail(j *job.TrainingJob, now time.Time, reason, message string) (job.Status, []Note) {
	d := &decision{Observed: Observed{Job: j, Now: now}}
	d.Status = api.Clone(j.Status)
	d.finish(job.Failed, reason, message)
	return d.Status, d.Notes
}
