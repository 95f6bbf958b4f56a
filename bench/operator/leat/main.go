// Command leat runs the CronJob operator on leat.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/bench/operator/cronjob"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/reconcile/owner"
)

var (
	cronJobs = api.Resource{Group: cronjob.GroupVersion.Group, Version: "v1", Kind: "CronJob", Plural: "cronjobs", Namespaced: true}
	jobs     = api.Resource{Group: "batch", Version: "v1", Kind: "Job", Plural: "jobs", Namespaced: true}
	pods     = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
)

type reconciler struct {
	cronJobs *cachedclient.Typed[*cronjob.CronJob]
	jobs     *cachedclient.Typed[*batchv1.Job]
	pods     *cachedclient.Partial[*metav1.PartialObjectMetadata]
	byOwner  *cache.Index[*batchv1.Job, api.Key]
	byLabel  *cache.Index[*metav1.PartialObjectMetadata, api.Key]
}

// Reconcile brings one CronJob up to date.
func (r *reconciler) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	c, err := r.cronJobs.Get(ctx, key)
	if err != nil {
		return controller.Result{}, ignore(err, apierrors.IsNotFound)
	}
	owned, err := r.jobs.List(ctx, cachedclient.ListOptions{}, cachedclient.By(r.byOwner, key))
	if err != nil {
		return controller.Result{}, err
	}
	theirs, err := r.pods.List(ctx, cachedclient.ListOptions{Shared: true}, cachedclient.By(r.byLabel, key))
	if err != nil {
		return controller.Result{}, err
	}
	plan := cronjob.Decide(c, owned.Items, len(theirs.Items), time.Now())
	for _, j := range plan.Delete {
		err := r.jobs.Delete(ctx, api.KeyOf(j), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
		if ignore(err, apierrors.IsNotFound) != nil {
			return controller.Result{}, err
		}
	}
	if plan.Create != nil {
		if err := owner.SetController(c, cronJobs, plan.Create); err != nil {
			return controller.Result{}, err
		}
		if _, err := r.jobs.Create(ctx, plan.Create, metav1.CreateOptions{}); ignore(err, apierrors.IsAlreadyExists) != nil {
			return controller.Result{}, err
		}
	}
	if !c.Status.Equal(plan.Status) {
		c.Status = plan.Status
		if _, err := r.cronJobs.UpdateStatus(ctx, c, metav1.UpdateOptions{}); err != nil {
			return controller.Result{}, err
		}
	}
	return controller.Result{RequeueAfter: plan.Again}, nil
}

func ignore(err error, which func(error) bool) error {
	if which(err) {
		return nil
	}
	return err
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, host string) error {
	p, err := program.New(program.Options{Name: "cronjob", Config: apiclient.Config{Host: host}})
	if err != nil {
		return err
	}
	r := &reconciler{
		cronJobs: program.Typed(p, cronJobs, informer.Options[*cronjob.CronJob]{}),
		jobs:     program.Typed(p, jobs, informer.Options[*batchv1.Job]{}),
		pods:     program.Partial(p, pods, informer.Options[*metav1.PartialObjectMetadata]{}),
	}
	r.byOwner = informer.AddIndex(r.jobs.Informer(), func(j *batchv1.Job) []api.Key {
		ref := metav1.GetControllerOf(j)
		if ref == nil || ref.APIVersion != cronjob.GroupVersion.String() || ref.Kind != cronJobs.Kind {
			return nil
		}
		return []api.Key{{Namespace: j.Namespace, Name: ref.Name}}
	})
	r.byLabel = informer.AddIndex(r.pods.Informer(), func(p *metav1.PartialObjectMetadata) []api.Key {
		if name, ok := p.Labels[cronjob.Label]; ok {
			return []api.Key{{Namespace: p.Namespace, Name: name}}
		}
		return nil
	})
	program.Controller(p, "cronjob", r, controller.For(r.cronJobs.Informer()), controller.Owns(r.cronJobs.Informer(), r.jobs.Informer()))
	go func() {
		for _, synced := range []<-chan struct{}{r.cronJobs.Informer().Synced(), r.jobs.Informer().Synced(), r.pods.Informer().Synced()} {
			<-synced
		}
		fmt.Println("ready")
	}()
	return p.Run(ctx)
}
