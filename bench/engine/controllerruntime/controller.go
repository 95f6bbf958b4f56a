package controllerruntime

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leatproject/leat/bench/subject"
)

// controller is a manager with one controller, which has one worker.
type controller struct {
	manager.Manager
}

func newController(s subject.Spec, h subject.Hooks) (subject.Informer, error) {
	config := &rest.Config{Host: s.URL, BearerToken: s.Token, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA}}
	m, err := ctrl.NewManager(config, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		MapperProvider: podMapper,
	})
	if err != nil {
		return nil, err
	}
	h = h.PerObject(s.Objects)
	r := reconcile.Func(func(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
		var pod corev1.Pod
		// Without the copy, because the row measures when the reconcile begins.
		err := m.GetCache().Get(ctx, q.NamespacedName, &pod, client.UnsafeDisableDeepCopy)
		if err == nil {
			h.Updated(nil, &pod)
		}
		return reconcile.Result{}, err
	})
	return controller{m}, ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).Complete(r)
}

// podMapper knows pods, so that the server of the bench needs no discovery.
func podMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	return mapper, nil
}

// Run runs the manager until ctx ends.
func (c controller) Run(ctx context.Context) error { return c.Start(ctx) }

// Len is the number of objects in the cache.
func (c controller) Len() int {
	var pods corev1.PodList
	if err := c.GetCache().List(context.Background(), &pods); err != nil {
		return 0
	}
	return len(pods.Items)
}
