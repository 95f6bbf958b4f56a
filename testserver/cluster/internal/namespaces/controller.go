package namespaces

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
)

// The pause between two looks at a namespace that is not empty yet is half of the time that the deletion has taken,
// within these bounds. kube-controller-manager waits for up to 8 seconds if objects have finalizers.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 8 * time.Second
)

// Options are the options of a Controller. The zero value is a good default.
type Options struct {
	// Delay is the time between the deletion of a namespace and the deletion of its contents. kube-controller-manager
	// waits 5 seconds, so that every API server knows of the deletion. Here, there is only one.
	Delay time.Duration
	// Controller are the options of the controller.
	Controller controller.Options
}

// Controller deletes the contents of namespaces.
type Controller struct {
	options    Options
	client     *apiclient.Client
	namespaces *apiclient.TypedClient[*corev1.Namespace]
	mapper     *discovery.Mapper
	informer   *informer.Informer[*corev1.Namespace]
	controller *controller.Controller[api.Key]
}

var resource = api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}

// New returns a controller of the namespaces that a client reaches.
func New(client *apiclient.Client, o Options) *Controller {
	c := &Controller{
		options: o, client: client, namespaces: apiclient.NewTyped[*corev1.Namespace](client, resource, ""),
		mapper: discovery.New(client, discovery.Options{RefreshInterval: -1}),
	}
	c.informer = informer.New(c.namespaces, informer.Options[*corev1.Namespace]{Logger: o.Controller.Logger})
	c.controller = controller.New("namespace", controller.Func[api.Key](c.reconcile), o.Controller)
	c.controller.Watch(controller.For(c.informer).When(func(n api.Change[*corev1.Namespace]) bool {
		return n.Type != api.Deleted && n.Object.DeletionTimestamp != nil
	}))
	return c
}

// Run works until ctx ends. It returns after its goroutines have ended. It runs once.
func (c *Controller) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{c.informer.Run, c.controller.Run} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// reconcile takes the next step in the deletion of a namespace.
func (c *Controller) reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	ns, err := c.namespaces.Get(ctx, key, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil || ns.DeletionTimestamp == nil || len(ns.Spec.Finalizers) == 0 {
		return controller.Result{}, err
	}
	if wait := time.Until(ns.DeletionTimestamp.Add(c.options.Delay)); c.options.Delay > 0 && wait > 0 {
		return controller.Result{RequeueAfter: wait}, nil
	}
	if ns.Status.Phase != corev1.NamespaceTerminating {
		ns.Status.Phase = corev1.NamespaceTerminating
		if ns, err = c.namespaces.UpdateStatus(ctx, ns, metav1.UpdateOptions{}); err != nil {
			return controller.Result{}, err
		}
	}
	found := c.deleteContent(ctx, ns)
	if ctx.Err() != nil {
		return controller.Result{}, ctx.Err()
	}
	if changed := found.writeConditions(&ns.Status, metav1.Now()); changed {
		if ns, err = c.namespaces.UpdateStatus(ctx, ns, metav1.UpdateOptions{}); err != nil {
			return controller.Result{}, err
		}
	}
	switch {
	case len(found.failures) > 0:
		return controller.Result{}, errors.Join(found.failures...)
	case found.left:
		return controller.Result{RequeueAfter: pause(time.Since(ns.DeletionTimestamp.Time))}, nil
	}
	return controller.Result{}, c.finalize(ctx, key, ns)
}

func pause(elapsed time.Duration) time.Duration {
	return min(max(elapsed/2, shortestPause), longestPause)
}

// finalize removes the finalizer of this controller.
func (c *Controller) finalize(ctx context.Context, key api.Key, ns *corev1.Namespace) error {
	at := slices.Index(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	if at < 0 {
		return nil
	}
	ns.Spec.Finalizers = slices.Delete(ns.Spec.Finalizers, at, at+1)
	endpoint := apiclient.Subresource[*corev1.Namespace, *corev1.Namespace](c.client, resource, key, "finalize")
	_, err := endpoint.Update(ctx, ns, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
