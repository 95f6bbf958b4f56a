package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leatproject/leat/e2e/conformance/harness"
	"github.com/leatproject/leat/internal/fixture/must"
)

type apiextensionsCRD = apiextensionsv1.CustomResourceDefinition

var errStillThere = errors.New("it is still there")

func convert(from *unstructured.Unstructured, to client.Object) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.Object, to, true)
}

const finalizer = "conformance.example.com/finalizer"

// reconciler gives each Widget a Deployment of its size, and writes the number of replicas into its status.
type reconciler struct {
	client.Client
	events events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !w.DeletionTimestamp.IsZero() {
		controllerutil.RemoveFinalizer(w, finalizer)
		return ctrl.Result{}, r.Update(ctx, w)
	}
	if controllerutil.AddFinalizer(w, finalizer) {
		return ctrl.Result{}, r.Update(ctx, w)
	}
	d := deployment(w.Namespace, w.Name)
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		d.Spec.Replicas = w.Spec.Size
		return controllerutil.SetControllerReference(w, d, types)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if done == controllerutil.OperationResultCreated {
		r.events.Eventf(w, d, corev1.EventTypeNormal, "Created", "Create", "created a Deployment")
	}
	if w.Status.Replicas == d.Status.Replicas {
		return ctrl.Result{}, nil
	}
	before := w.copy()
	w.Status.Replicas = d.Status.Replicas
	return ctrl.Result{}, r.Status().Patch(ctx, w, client.MergeFrom(before))
}

// TestManager runs a manager with leader election and a controller.
func TestManager(t *testing.T) {
	t.Parallel()
	require.NoError(t, installed)
	namespace := server.Namespace(t)
	manager := must.Get(ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: types, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElection: true, LeaderElectionID: "conformance", LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	}))(t)
	r := &reconciler{manager.GetClient(), manager.GetEventRecorder("conformance")}
	require.NoError(t, ctrl.NewControllerManagedBy(manager).For(&Widget{}).Owns(&appsv1.Deployment{}).Complete(r))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()

	w := widget(namespace, "w")
	require.NoError(t, direct.Create(ctx, w))
	d := deployment(namespace, "w")
	harness.Wait(t, "the Deployment", func() error { return direct.Get(ctx, key(d), d) })
	require.EqualValues(t, 2, *d.Spec.Replicas)
	require.Equal(t, "w", metav1.GetControllerOf(d).Name)
	d.Status.Replicas = 2
	require.NoError(t, direct.Status().Update(ctx, d))
	harness.Wait(t, "the status", func() error {
		if err := direct.Get(ctx, key(w), w); err != nil || w.Status.Replicas != 2 {
			return fmt.Errorf("%d replicas: %w", w.Status.Replicas, err)
		}
		return nil
	})
	harness.Wait(t, "the Event", func() error {
		var list corev1.EventList
		err := direct.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"reason": "Created"})
		if err == nil && len(list.Items) == 0 {
			return errors.New("no Event")
		}
		return err
	})
	require.NoError(t, direct.Delete(ctx, w))
	harness.Wait(t, "the end of the finalizer", func() error {
		if err := direct.Get(ctx, key(w), w); !apierrors.IsNotFound(err) {
			return errStillThere
		}
		return nil
	})
}

// TestCache reads through a cache with a selector and an index.
func TestCache(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	c := must.Get(cache.New(server.Config, cache.Options{
		Scheme: types, DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"cached": "yes"})}},
	}))(t)
	require.NoError(t, c.IndexField(t.Context(), &corev1.Pod{}, "spec.serviceAccountName", func(o client.Object) []string {
		return []string{o.(*corev1.Pod).Spec.ServiceAccountName}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	require.True(t, c.WaitForCacheSync(ctx))

	for _, cached := range []string{"yes", "no"} {
		require.NoError(t, direct.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: cached, Namespace: namespace, Labels: map[string]string{"cached": cached}},
		}))
		require.NoError(t, direct.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: cached, Namespace: namespace},
			Spec:       corev1.PodSpec{ServiceAccountName: cached, Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
		}))
	}
	harness.Wait(t, "the cache", func() error {
		var maps corev1.ConfigMapList
		if err := c.List(ctx, &maps); err != nil || len(maps.Items) != 1 {
			return fmt.Errorf("%d ConfigMaps: %w", len(maps.Items), err)
		}
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.MatchingFields{"spec.serviceAccountName": "no"}); err != nil || len(pods.Items) != 1 {
			return fmt.Errorf("%d Pods: %w", len(pods.Items), err)
		}
		return nil
	})
}
