package training

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/reconcile/expectations"
)

// The resources that the controller reads and writes beside TrainingJobs.
var (
	Pods     = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	Services = api.Resource{Version: "v1", Kind: "Service", Plural: "services", Namespaced: true}
)

// Options are the options of a controller of TrainingJobs. Client, Jobs, Pods, Services and Recorder are required.
type Options struct {
	Client *apiclient.Client
	// Jobs, Pods and Services are the caches that the controller reads. They have not run yet.
	Jobs     *cachedclient.Typed[*job.TrainingJob]
	Pods     *informer.Informer[*plan.Pod]
	Services *informer.Informer[*plan.Service]
	Recorder *events.Recorder

	// Gate delays reconciles of jobs until the caches show the last written status. Nil means a gate with the default
	// options.
	Gate *cachedclient.Gate
	// Counts counts what happens to jobs. It may be nil.
	Counts *Counts
	// Controller are the options of the controller.
	Controller controller.Options
}

// New returns a controller of TrainingJobs. It returns an error if Options.Controller is invalid.
func New(o Options) (*controller.Controller[api.Key], error) { return newReconciler(o).controller(o) }

func (r *reconciler) controller(o Options) (*controller.Controller[api.Key], error) {
	if o.Gate == nil {
		o.Gate = cachedclient.NewGate(cachedclient.GateOptions{Logger: o.Controller.Logger})
	}
	return controller.Spec[api.Key]{
		Name:       "trainingjob",
		Reconciler: controller.Gated(controller.Objects(o.Jobs.Informer().Cache(), r), o.Gate),
		Sources:    r.sources(o),
		Options:    o.Controller,
	}.Build()
}

// reconciler takes jobs to their end. A gate covers its writes of jobs. Expectations cover the objects that it creates
// and deletes. They may take long, and the status is updated meanwhile.
type reconciler struct {
	jobs     *cachedclient.Typed[*job.TrainingJob]
	pods     children[*plan.Pod, *corev1.Pod]
	services children[*plan.Service, *corev1.Service]
	expected *expectations.Expectations[batch]
	recorder *events.Recorder
	counts   *Counts
}

func newReconciler(o Options) *reconciler {
	if o.Counts == nil {
		o.Counts = &Counts{}
	}
	return &reconciler{
		jobs:     o.Jobs,
		pods:     newChildren(o.Client, Pods, o.Pods, plan.NewPod),
		services: newChildren(o.Client, Services, o.Services, plan.NewService),
		expected: expectations.New[batch](expectations.Options{}),
		recorder: o.Recorder,
		counts:   o.Counts,
	}
}

// conflictRetry is the time after a conflict until the next reconcile, if no event comes earlier.
const conflictRetry = 5 * time.Second

// Reconcile takes the next steps of one job. The job is a copy and may be changed.
//
// A conflict is not an error that people must see: the newer state is on its way to the cache and causes another
// reconcile. But a conflict can also come from something else, such as a quota. Then no event follows, so the job is
// reconciled again after a while.
func (r *reconciler) Reconcile(ctx context.Context, j *job.TrainingJob) (controller.Result, error) {
	result, err := r.reconcile(ctx, j)
	if apierrors.IsConflict(err) {
		return controller.Result{RequeueAfter: conflictRetry}, nil
	}
	return result, err
}

func (r *reconciler) reconcile(ctx context.Context, j *job.TrainingJob) (controller.Result, error) {
	job.SetDefaults(j)
	// Check this before reading the caches. An object that arrives in between is in the cache and is no longer
	// expected.
	satisfied := r.expected.SatisfiedAll(batchesOf(j.UID)...)
	o, err := r.observe(ctx, j)
	if err != nil {
		return controller.Result{}, err
	}
	p := plan.Decide(o)
	j, err = r.writeStatus(ctx, j, p.Status, p.Notes)
	switch {
	case err != nil:
		return controller.Result{}, settled(err)
	case p.Err != nil:
		return controller.Result{}, controller.TerminalError(fmt.Errorf("training job %s: %w", api.FormatKey(api.KeyOf(j)), p.Err))
	case p.DeleteJob:
		return controller.Result{}, r.deleteJob(ctx, j)
	case !satisfied:
		// An expected object causes another reconcile. If it never comes, this one follows after its expectation has
		// ended.
		return controller.Result{RequeueAfter: sooner(p.After, expectations.DefaultTimeout+time.Second)}, nil
	}
	return controller.Result{RequeueAfter: p.After}, r.carryOut(ctx, j, p)
}

// sooner returns the shorter of two durations. A zero for a means that there is only b.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// settled returns nil if the object of a write no longer exists: it needs no write.
func settled(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// observe returns the Pods and Services of a job.
func (r *reconciler) observe(ctx context.Context, j *job.TrainingJob) (plan.Observed, error) {
	pods, err := r.pods.find(ctx, r.jobs, j)
	services, errServices := r.services.find(ctx, r.jobs, j)
	return plan.Observed{Job: j, Pods: pods, Services: services, Now: time.Now()}, errors.Join(err, errServices)
}

// writeStatus writes a changed status. Then it records the Events and counts the conditions that became true. It
// returns the job as the server stored it.
func (r *reconciler) writeStatus(ctx context.Context, j *job.TrainingJob, s job.Status, notes []plan.Note) (*job.TrainingJob, error) {
	before := j.Status
	if !equality.Semantic.DeepEqual(before, s) {
		j.Status = s
		stored, err := r.jobs.UpdateStatus(ctx, j, metav1.UpdateOptions{})
		if err != nil {
			return nil, err
		}
		job.SetDefaults(stored)
		j = stored
		r.counts.changed(before, s)
	}
	for _, n := range notes {
		kind := events.Normal
		if n.Warning {
			kind = events.Warning
		}
		r.recorder.Event(events.Event{Resource: job.Resource, Object: j, Type: kind, Reason: n.Reason, Note: n.Text})
	}
	return j, nil
}

// deleteJob deletes a job after its time to live, unless it has changed since it was read, because the change may
// prolong that time. The garbage collector deletes its Pods and Services.
func (r *reconciler) deleteJob(ctx context.Context, j *job.TrainingJob) error {
	err := r.jobs.Delete(ctx, api.KeyOf(j), metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &j.UID, ResourceVersion: &j.ResourceVersion},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	return settled(err)
}
