package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/examples/trainingjob/job"
)

// decideOutcome reports whether the job has succeeded or failed. Success is checked first, because failures do not
// matter after it.
func (d *decision) decideOutcome() (finished bool) {
	if d.successful() {
		d.finish(job.Succeeded, "JobSucceeded", "the job has succeeded")
		return true
	}
	if limit := d.Job.Spec.ActiveDeadlineSeconds; limit != nil && d.due(d.Status.StartTime.Time, *limit) {
		d.finish(job.Failed, "DeadlineExceeded", fmt.Sprintf("the job was active for longer than %d s", *limit))
		return true
	}
	d.forget()
	again, fatal := d.failures()
	if fatal != nil {
		d.finish(job.Failed, "ReplicaFailed", failureText(fatal))
		return true
	}
	return d.restart(again)
}

// successful reports whether the replicas that the success policy requires have succeeded.
func (d *decision) successful() bool {
	if d.Job.Spec.SuccessPolicy != job.AllWorkers {
		return d.done(Replica{Type: job.LeaderOf(d.Job)})
	}
	for _, r := range wanted(d.Job) {
		if r.Type.Trains() && !d.done(r) {
			return false
		}
	}
	return true
}

func (d *decision) done(r Replica) bool {
	p, found := d.pods.taken[r]
	return found && succeeded(p)
}

// succeeded reports whether a Pod has succeeded.
func succeeded(p *Pod) bool { return p.Status.Phase == corev1.PodSucceeded }

// failures returns the failed Pods to be replaced, or a failed Pod that must not be replaced.
func (d *decision) failures() (again []*Pod, fatal *Pod) {
	for _, r := range wanted(d.Job) {
		p, found := d.pods.taken[r]
		switch {
		case !found || !failed(p):
		case mayRestart(p, d.Job.Spec.Replicas[r.Type].RestartPolicy):
			again = append(again, p)
		default:
			return nil, p
		}
	}
	return again, nil
}

// restart counts the Pods to be replaced, and fails the job if there are more restarts than allowed. Restarts by the
// kubelet count, too. Those of a replaced Pod are added to the status, because they would be lost with the Pod.
func (d *decision) restart(again []*Pod) (finished bool) {
	total := d.Status.Restarts
	counted := map[types.UID]bool{}
	for _, uid := range d.Status.Restarting {
		counted[uid] = true
	}
	again = slices.DeleteFunc(again, func(p *Pod) bool { return counted[p.UID] })
	for _, p := range again {
		counted[p.UID] = true
		total += 1 + restarts(p)
	}
	running := int32(0)
	for _, p := range d.pods.taken {
		if !counted[p.UID] {
			running += restarts(p)
		}
	}
	if limit := d.Job.Spec.BackoffLimit; limit != nil && total+running > *limit {
		text := fmt.Sprintf("%d restarts are needed, and %d allowed", total+running, *limit)
		if len(again) > 0 {
			text += ": " + failureText(again[0])
		}
		d.finish(job.Failed, "BackoffLimitExceeded", text)
		return true
	}
	d.Status.Restarts = total
	for _, p := range again {
		d.Status.Restarting = append(d.Status.Restarting, p.UID)
		d.note(true, "ReplicaRestarting", failureText(p)+", and is replaced")
	}
	return false
}

func failureText(p *Pod) string {
	if code, known := exitCode(p); known {
		return fmt.Sprintf("pod %s failed with exit code %d", p.Name, code)
	}
	return fmt.Sprintf("pod %s failed", p.Name)
}

// anyRuns reports whether the chief, the master or a worker runs.
func (d *decision) anyRuns() bool {
	for r, p := range d.pods.taken {
		if r.Type.Trains() && active(p) && p.Status.Phase == corev1.PodRunning {
			return true
		}
	}
	return false
}

// anyWaits reports whether a replica neither runs nor has ended.
func (d *decision) anyWaits() bool {
	for _, r := range wanted(d.Job) {
		p, found := d.pods.taken[r]
		if !found || p.DeletionTimestamp != nil || !over(p) && p.Status.Phase != corev1.PodRunning {
			return true
		}
	}
	return false
}
