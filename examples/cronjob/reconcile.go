package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/reconcile/owner"
)

type cronJobReconciler struct {
	cronJobs *cachedclient.Typed[*CronJob]
	jobs     *cachedclient.Typed[*batchv1.Job]
	byOwner  *cache.Index[*batchv1.Job, types.UID]
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

// start creates the Job of a run. The name contains the time of the run, so the server refuses a second creation.
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
