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
	"github.com/leatproject/leat/expectations"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/recorder"
)

// The resources that the controller reads and writes beside TrainingJobs.
var (
	Pods     = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	Services = api.Resource{Version: "v1", Kind: "Service", Plural: "services", Namespaced: true}
)

// Options of a controller of TrainingJobs. Client, Jobs, Pods, Services and Recorder are required.
type Options struct {
	Client *apiclient.Client
	// Jobs, Pods and Services are what the controller reads. None of them has run yet.
	Jobs     *informer.Share[*job.TrainingJob]
	Pods     *informer.Share[*plan.Pod]
	Services *informer.Share[*plan.Service]
	Recorder *recorder.Recorder

	// Gate holds back reconciles of jobs whose status was written a moment ago. Nil is one with the usual options.
	Gate *cachedclient.Gate
	// Counts is told of what happened to jobs, if not nil.
	Counts *Counts
	// Controller are the options of the engine.
	Controller controller.Options
}

// New returns a controller of TrainingJobs. The error says what is wrong with the options of the engine.
func New(o Options) (*controller.Controller[api.Key], error) { return newReconciler(o).controller(o) }

func (r *reconciler) controller(o Options) (*controller.Controller[api.Key], error) {
	if o.Gate == nil {
		o.Gate = cachedclient.NewGate(cachedclient.GateOptions{Logger: o.Controller.Logger})
	}
	return controller.Spec[api.Key]{
		Name:       "trainingjob",
		Reconciler: controller.Gated(controller.Objects(o.Jobs.Cache(), r), o.Gate),
		Sources:    r.sources(o),
		Options:    o.Controller,
	}.Build()
}

// reconciler takes jobs to their end. What it writes of a job itself the gate waits for. What it makes for a job, and what
// it deletes, is expected instead: that takes as long as it takes, and the status is kept up to date meanwhile.
type reconciler struct {
	jobs     *cachedclient.Typed[*job.TrainingJob]
	pods     children[*plan.Pod, *corev1.Pod]
	services children[*plan.Service, *corev1.Service]
	expected *expectations.Expectations[batch]
	recorder *recorder.Recorder
	counts   *Counts
}

func newReconciler(o Options) *reconciler {
	if o.Counts == nil {
		o.Counts = &Counts{}
	}
	return &reconciler{
		jobs:     cachedclient.NewTyped(apiclient.NewTyped[*job.TrainingJob](o.Client, job.Resource, ""), o.Jobs.Informer, cachedclient.Options{}),
		pods:     newChildren(o.Client, Pods, o.Pods.Informer, plan.NewPod),
		services: newChildren(o.Client, Services, o.Services.Informer, plan.NewService),
		expected: expectations.New[batch](expectations.Options{}),
		recorder: o.Recorder,
		counts:   o.Counts,
	}
}

// Reconcile takes the next steps of one job, which is a copy and may be changed.
func (r *reconciler) Reconcile(ctx context.Context, j *job.TrainingJob) (controller.Result, error) {
	job.SetDefaults(j)
	// Asked before anything is looked at: what comes in between is seen, and what is seen is not expected.
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
		// What is expected brings another reconcile when it comes. Should it never, there is one when that is certain.
		return controller.Result{RequeueAfter: sooner(p.After, expectations.DefaultTimeout+time.Second)}, nil
	}
	return controller.Result{RequeueAfter: p.After}, r.carryOut(ctx, j, p)
}

// sooner is the shorter one of two times, of which a is none if it is zero.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// settled makes errors that a retry is not the answer to no errors: after a conflict the newer state is on its way to the
// cache and brings another reconcile, and of a job that is gone nothing has to be written.
func settled(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// observe finds what belongs to a job.
func (r *reconciler) observe(ctx context.Context, j *job.TrainingJob) (plan.Observed, error) {
	pods, err := r.pods.find(ctx, r.jobs, j)
	services, errServices := r.services.find(ctx, r.jobs, j)
	return plan.Observed{Job: j, Pods: pods, Services: services, Now: time.Now()}, errors.Join(err, errServices)
}

// writeStatus writes a status if it says something new, and tells and counts what has come true with it. It returns the
// job as the server has it.
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
		kind := recorder.Normal
		if n.Warning {
			kind = recorder.Warning
		}
		r.recorder.Event(recorder.Event{Resource: job.Resource, Object: j, Type: kind, Reason: n.Reason, Note: n.Text})
	}
	return j, nil
}

// deleteJob deletes a job whose time has come, unless it has been changed since it was read: it may have been given more.
// What belonged to it is the garbage collector's.
func (r *reconciler) deleteJob(ctx context.Context, j *job.TrainingJob) error {
	background := metav1.DeletePropagationBackground
	err := r.jobs.Delete(ctx, api.KeyOf(j), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &j.UID, ResourceVersion: &j.ResourceVersion}, PropagationPolicy: &background,
	})
	return settled(err)
}
