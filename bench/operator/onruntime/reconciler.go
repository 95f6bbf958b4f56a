// Package onruntime is the CronJob operator on controller-runtime. Its caches are a parameter.
package onruntime

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leatproject/leat/bench/operator/cronjob"
)

const (
	ownerField = ".metadata.controller"
	labelField = ".metadata.labels.cronjob"
)

type reconciler struct{ client.Client }

// Reconcile brings one CronJob up to date.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var c cronjob.CronJob
	if err := r.Get(ctx, req.NamespacedName, &c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var jobs batchv1.JobList
	if err := r.List(ctx, &jobs, client.InNamespace(req.Namespace), client.MatchingFields{ownerField: req.Name}); err != nil {
		return ctrl.Result{}, err
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(req.Namespace), client.MatchingFields{labelField: req.Name}); err != nil {
		return ctrl.Result{}, err
	}
	owned := make([]*batchv1.Job, len(jobs.Items))
	for i := range jobs.Items {
		owned[i] = &jobs.Items[i]
	}
	plan := cronjob.Decide(&c, owned, len(pods.Items), time.Now())
	for _, j := range plan.Delete {
		if err := r.Delete(ctx, j, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	if plan.Create != nil {
		if err := ctrl.SetControllerReference(&c, plan.Create, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, plan.Create); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, err
		}
	}
	if !c.Status.Equal(plan.Status) {
		c.Status = plan.Status
		if err := r.Status().Update(ctx, &c); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: plan.Again}, nil
}

// Run runs the operator until ctx ends. It prints a line when the caches have synchronized. A nil newCache is that of
// controller-runtime.
func Run(ctx context.Context, host string, newCache cache.NewCacheFunc) error {
	log.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cronjob.AddToScheme(scheme))
	config := &rest.Config{Host: host, QPS: -1, ContentConfig: rest.ContentConfig{
		ContentType:        "application/json", // the server of the bench decodes no protobuf
		AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
	}}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, NewCache: newCache, Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := Setup(ctx, m); err != nil {
		return err
	}
	if err := m.Add(manager.RunnableFunc(func(context.Context) error {
		fmt.Println("ready") // runnables start after the caches
		return nil
	})); err != nil {
		return err
	}
	return m.Start(ctx)
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, m ctrl.Manager) error {
	if err := m.GetFieldIndexer().IndexField(ctx, &batchv1.Job{}, ownerField, func(o client.Object) []string {
		owner := metav1.GetControllerOf(o)
		if owner == nil || owner.APIVersion != cronjob.GroupVersion.String() || owner.Kind != "CronJob" {
			return nil
		}
		return []string{owner.Name}
	}); err != nil {
		return err
	}
	if err := m.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, labelField, func(o client.Object) []string {
		if name, ok := o.GetLabels()[cronjob.Label]; ok {
			return []string{name}
		}
		return nil
	}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).For(&cronjob.CronJob{}).Owns(&batchv1.Job{}).Complete(&reconciler{m.GetClient()})
}
