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
	"github.com/leatproject/leat/status"
)

// Observed is what there is: a job, with its defaults, and what belongs to it.
type Observed struct {
	Job      *job.TrainingJob
	Pods     []*Pod
	Services []*Service
	Now      time.Time
}

// Plan is what to do. The status is written first: what is deleted afterwards cannot tell any more what it says.
type Plan struct {
	Status job.Status

	CreatePods, CreateServices []Replica
	DeletePods                 []*Pod
	DeleteServices             []*Service
	DeleteJob                  bool

	Notes []Note        // for people, once the status is written
	After time.Duration // until something is due; zero is never
	Err   error         // what is wrong with the job, and no retry mends
}

// Note is something to tell about a job.
type Note struct {
	Warning      bool
	Reason, Text string
}

// Decide says what is to be done for a job. There is a next step as long as something happens: what a plan brings about is
// what the next one is made of.
func Decide(o Observed) Plan {
	d := &decision{Observed: o, pods: sortOut(o.Job, o.Pods), services: sortOut(o.Job, o.Services)}
	d.Status = api.Clone(o.Job.Status)
	switch {
	case o.Job.DeletionTimestamp != nil: // what belongs to it goes with it
	case job.Finished(o.Job):
		d.cleanUp()
	default:
		d.live()
	}
	return d.Plan
}

// decision is a plan that is being made.
type decision struct {
	Observed
	Plan
	pods     slots[*Pod]
	services slots[*Service]
}

// live takes a job that has not finished one step further.
func (d *decision) live() {
	d.Status.ObservedGeneration = d.Job.Generation
	d.become(job.Created, "JobCreated", "the job was seen by its controller")
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

// suspend has nothing run.
func (d *decision) suspend() {
	d.Status.StartTime, d.Status.Restarting, d.Status.Replicas = nil, nil, nil
	d.become(job.Suspended, "JobSuspended", "the job is suspended")
	d.deletePods(func(*Pod) bool { return true })
	d.deleteServices(d.Services)
}

// resume starts the clock, for the first time or again.
func (d *decision) resume() {
	if status.Is(d.Status.Conditions, job.Suspended, metav1.ConditionTrue) {
		d.unset(job.Suspended, "JobResumed", "the job was resumed")
		d.note(false, "JobResumed", "the job was resumed")
	}
	if d.Status.StartTime == nil {
		d.Status.StartTime = d.now()
	}
}

// count counts the Pods that are wanted.
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

// train replaces what failed, makes what is missing and deletes what is not wanted any more.
func (d *decision) train() {
	d.judgeProgress()
	d.CreatePods, d.CreateServices = d.pods.missing(d.Job), d.services.missing(d.Job)
	d.deletePods(func(p *Pod) bool {
		return slices.Contains(d.Status.Restarting, p.UID) || slices.Contains(d.pods.surplus, p)
	})
	d.deleteServices(d.services.surplus)
}

// judgeProgress says whether the job runs or is being restarted. It is restarted until no replica is missing or waits.
func (d *decision) judgeProgress() {
	restarting := len(d.Status.Restarting) > 0 ||
		status.Is(d.Status.Conditions, job.Restarting, metav1.ConditionTrue) && d.anyWaits()
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

// forget drops the restarts of Pods that have gone.
func (d *decision) forget() {
	d.Status.Restarting = slices.DeleteFunc(d.Status.Restarting, func(uid types.UID) bool {
		return !slices.ContainsFunc(d.Pods, func(p *Pod) bool { return p.UID == uid })
	})
}

// deletePods deletes the Pods that are meant, and not yet told to end.
func (d *decision) deletePods(meant func(*Pod) bool) {
	for _, p := range d.Pods {
		if p.DeletionTimestamp == nil && meant(p) {
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

// longest is the time that a time.Duration holds, in seconds: 292 years.
const longest = int64(math.MaxInt64 / time.Second)

// due has the job be looked at again so many seconds after a time, and tells whether they are over.
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
