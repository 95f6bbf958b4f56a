package docs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/owner"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

// CronJob starts a Job once in a period.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Every    metav1.Duration         `json:"every"`
		Suspend  bool                    `json:"suspend,omitempty"`
		Template batchv1.JobTemplateSpec `json:"template"`
	} `json:"spec"`
	Status CronJobStatus `json:"status,omitzero"`
}

// CronJobStatus is what the operator has seen.
type CronJobStatus struct {
	Active  int         `json:"active,omitempty"`
	LastRun metav1.Time `json:"lastRun,omitzero"`
}

var (
	cronJobs = api.Resource{Group: "batch.tutorial.example", Version: "v1", Kind: "CronJob", Plural: "cronjobs", Namespaced: true}
	jobs     = api.Resource{Group: "batch", Version: "v1", Kind: "Job", Plural: "jobs", Namespaced: true}
)

type cronJobReconciler struct {
	cronJobs *cachedclient.Typed[*CronJob]
	jobs     *cachedclient.Typed[*batchv1.Job]
	byOwner  *cache.Index[*batchv1.Job, types.UID]
}

// newCronJobs makes the program. manager.UntilSignal(ctx, p.Run) runs it.
func newCronJobs(o program.Options) (*program.Program, error) {
	p, err := program.New(o)
	if err != nil {
		return nil, err
	}
	r := &cronJobReconciler{
		cronJobs: program.Typed(p, cronJobs, informer.Options[*CronJob]{}),
		jobs:     program.Typed(p, jobs, informer.Options[*batchv1.Job]{}),
	}
	r.byOwner = informer.AddIndex(r.jobs.Informer(), func(j *batchv1.Job) []types.UID { return []types.UID{owner.ControllerOf(j)} })
	program.Controller(p, "cronjob", r,
		controller.For(r.cronJobs.Informer()), controller.Owns(r.cronJobs.Informer(), r.jobs.Informer()))
	return p, nil
}

// Reconcile starts the Job that is due, and writes the status.
func (r *cronJobReconciler) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	c, err := r.cronJobs.Get(ctx, key) // a copy, so it may be changed
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // the garbage collector deletes its Jobs
	}
	if err != nil {
		return controller.Result{}, err
	}
	owned, err := r.jobs.List(ctx, cachedclient.ListOptions{}, cachedclient.By(r.byOwner, c.UID))
	if err != nil {
		return controller.Result{}, err
	}
	status := CronJobStatus{LastRun: c.Status.LastRun}
	for _, j := range owned.Items {
		if j.Status.CompletionTime == nil {
			status.Active++
		}
	}
	last := c.Status.LastRun
	if last.IsZero() {
		last = c.CreationTimestamp
	}
	next := last.Add(c.Spec.Every.Duration)
	if wait := time.Until(next); wait <= 0 && !c.Spec.Suspend {
		if err := r.start(ctx, c, next); err != nil {
			return controller.Result{}, err
		}
		status.Active++
		status.LastRun, next = metav1.Time{Time: next}, next.Add(c.Spec.Every.Duration)
	}
	if status != c.Status {
		c.Status = status
		if _, err := r.cronJobs.UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
			return controller.Result{}, err // a conflict too: the next reconcile reads the newer object
		}
	}
	if c.Spec.Suspend {
		return controller.Result{}, nil
	}
	return controller.Result{RequeueAfter: time.Until(next)}, nil
}

// start creates the Job of a run. Its name is that of the run, so a repeated creation is refused.
func (r *cronJobReconciler) start(ctx context.Context, c *CronJob, at time.Time) error {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.Name, at.Unix())}}
	j.Labels, j.Spec = c.Spec.Template.Labels, c.Spec.Template.Spec
	if err := owner.SetController(c, cronJobs, j); err != nil {
		return err
	}
	_, err := r.jobs.Create(ctx, j, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func TestCronJobStartsJobs(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		k.Server.Define(testserver.Definition{Resource: cronJobs}) // instead of a CustomResourceDefinition
		p, err := newCronJobs(program.Options{Name: "cronjob", Client: k.Client, Logger: k.Logger})
		require.NoError(t, err)
		k.Start(p.Run)
		c := &CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello"}}
		c.Spec.Every.Duration = time.Hour
		c.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "hello:1"}}
		testkit.Create(k, cronJobs, c)

		k.Fail("update", "cronjobs.batch.tutorial.example/status", 1, 409) // another client was faster
		k.Pass(150 * time.Minute)
		require.Len(t, testkit.List[*batchv1.Job](k, jobs, "default"), 2)
		require.Equal(t, 2, testkit.Get[*CronJob](k, cronJobs, api.KeyOf(c)).Status.Active)
	})
}
