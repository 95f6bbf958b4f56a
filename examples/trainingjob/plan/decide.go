package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/reconcile/conditions"
)

// Observed is the input of a decision: a job with its defaults, and its Pods and Services.
type Observed struct {
	Job      *job.TrainingJob
	Pods     []*Pod
	Services []*Service
	Now      time.Time
}

// Plan is the output of a decision. The status is written first, because it must not depend on objects that are deleted
// afterwards.
type Plan struct {
	Status job.Status

	CreatePods, CreateServices []Replica
	DeletePods                 []*Pod
	DeleteServices             []*Service
	DeleteJob                  bool

	Notes []Note        // Events to record after the status was written
	After time.Duration // time until the next reconcile; zero means none
	Err   error         // an error of the job that no retry can repair
}

// Note is an Event about a job.
type Note struct {
	Warning      bool
	Reason, Text string
}

// Decide returns the next step of a job. It must be called again after every change, because it plans one step at a
// time.
func Decide(o Observed) Plan {
	d := &decision{Observed: o, pods: sortOut(o.Job, o.Pods), services: sortOut(o.Job, o.Services)}
	d.Status = api.Clone(o.Job.Status)
	switch {
	case o.Job.DeletionTimestamp != nil: // the garbage collector deletes its Pods and Services
	case job.Finished(o.Job):
		d.cleanUp()
	default:
		d.live()
	}
	return d.Plan
}

// decision is a plan in progress.
type decision struct {
	Observed
	Plan
	pods     slots[*Pod]
	services slots[*Service]
}

// live takes the next step of a job that has not finished.
func (d *decision) live() {
	d.Status.ObservedGeneration = d.Job.Generation
	d.become(job.Created, "JobCreated", "the controller has received the job")
	if err := job.Validate(d.Job); err != nil {
		d.Err = err
		d.finish(job.Failed, "InvalidSpec", err.Error())
		return
	}
	for _, text := range append(slices.Clone(d.pods.odd), d.services.odd...) {
		d.note(true, "UnclearReplica", text)
	}
	if d.Job.Spec.Suspend {
		d.suspend()
		return
	}
	d.resume()
	d.count()
	if !d.decideOutcome() {
		d.train()
	}
}

// suspend deletes all Pods and Services.
func (d *decision) suspend() {
	d.Status.StartTime, d.Status.Restarting, d.Status.Replicas = nil, nil, nil
	d.become(job.Suspended, "JobSuspended", "the job is suspended")
	d.deletePods(func(*Pod) bool { return true })
	d.deleteServices(d.Services)
}

// resume sets the start time, at the start and after a suspension.
func (d *decision) resume() {
	if conditions.Is(d.Status.Conditions, job.Suspended, metav1.ConditionTrue) {
		d.unset(job.Suspended, "JobResumed", "the job was resumed")
		d.note(false, "JobResumed", "the job was resumed")
	}
	if d.Status.StartTime == nil {
		d.Status.StartTime = d.now()
	}
}

// count counts the Pods of wanted replicas by type.
func (d *decision) count() {
	d.Status.Replicas = map[job.ReplicaType]job.ReplicaStatus{}
	for t := range d.Job.Spec.Replicas {
		d.Status.Replicas[t] = job.ReplicaStatus{}
	}
	for r, p := range d.pods.taken {
		s := d.Status.Replicas[r.Type]
		switch {
		case active(p):
			s.Active++
		case succeeded(p):
			s.Succeeded++
		case failed(p):
			s.Failed++
		}
		d.Status.Replicas[r.Type] = s
	}
}

// train creates missing replicas and deletes failed and surplus ones.
func (d *decision) train() {
	d.setProgress()
	d.CreatePods, d.CreateServices = d.pods.missing(d.Job), d.services.missing(d.Job)
	d.deletePods(func(p *Pod) bool {
		return slices.Contains(d.Status.Restarting, p.UID) || slices.Contains(d.pods.surplus, p)
	})
	d.deleteServices(d.services.surplus)
}

// setProgress sets the conditions Running and Restarting. A job is restarting until no replica is missing or waiting.
func (d *decision) setProgress() {
	restarting := len(d.Status.Restarting) > 0 ||
		conditions.Is(d.Status.Conditions, job.Restarting, metav1.ConditionTrue) && d.anyWaits()
	switch {
	case restarting:
		d.become(job.Restarting, "ReplicaRestarting", d.restartText())
	case d.anyRuns():
		d.become(job.Running, "JobRunning", "the job runs")
	default:
		d.unset(job.Running, "NothingRuns", "neither the chief nor a worker runs")
	}
}

func (d *decision) restartText() string {
	return fmt.Sprintf("replicas are being replaced; there were %d restarts", d.Status.Restarts)
}

// forget drops the UIDs of restarted Pods that no longer exist.
func (d *decision) forget() {
	d.Status.Restarting = slices.DeleteFunc(d.Status.Restarting, func(uid types.UID) bool {
		return !slices.ContainsFunc(d.Pods, func(p *Pod) bool { return p.UID == uid })
	})
}

// deletePods plans the deletion of the selected Pods that are not being deleted yet.
func (d *decision) deletePods(selected func(*Pod) bool) {
	for _, p := range d.Pods {
		if p.DeletionTimestamp == nil && selected(p) {
			d.DeletePods = append(d.DeletePods, p)
		}
	}
}

func (d *decision) deleteServices(services []*Service) {
	for _, s := range services {
		if s.DeletionTimestamp == nil {
			d.DeleteServices = append(d.DeleteServices, s)
		}
	}
}

// longest is the longest time.Duration in seconds: 292 years.
const longest = int64(math.MaxInt64 / time.Second)

// due reports whether a number of seconds has passed since a time. Otherwise it plans a reconcile for that time.
func (d *decision) due(since time.Time, seconds int64) bool {
	at := since.Add(time.Duration(min(seconds, longest)) * time.Second)
	d.After = max(at.Sub(d.Now), 0)
	return d.After == 0
}

func (d *decision) now() *metav1.Time {
	t := metav1.NewTime(d.Now).Rfc3339Copy()
	return &t
}

func (d *decision) note(warning bool, reason, text string) {
	d.Notes = append(d.Notes, Note{Warning: warning, Reason: reason, Text: text})
}
