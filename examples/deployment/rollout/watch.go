package rollout

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/reconcile/owner"
)

// watch adds the sources of the controller: Deployments, their ReplicaSets, orphans that they may adopt, and the
// deletion of a last Pod that Recreate waits for.
func (r *reconciler) watch(c *controller.Controller[api.Key], o Options) {
	if o.Shards != nil {
		c.Watch(o.Shards.Source())
	} else {
		c.Watch(controller.For(o.Deployments.Informer()))
	}
	c.Watch(controller.Owns(o.Deployments.Informer(), o.ReplicaSets.Informer()).When(predicate.ResourceVersionChanged))
	c.Watch(controller.Map(o.ReplicaSets.Informer(), r.adopters).Named("orphans").
		Unless(predicate.Deleted).WhenAny(predicate.LabelsChanged, predicate.Changed(owner.ControllerOf[*appsv1.ReplicaSet])))
	c.Watch(controller.Map(o.Pods.Informer(), r.emptied).Named("last pods").When(predicate.Deleted))
}

// adopters returns the Deployments whose selectors match an orphan. If selectors overlap there are several, and the
// first to write adopts it.
func (r *reconciler) adopters(s *appsv1.ReplicaSet) []api.Key {
	if owner.ControllerOf(s) != "" {
		return nil
	}
	var keys []api.Key
	for _, d := range r.byNamespace.ByIndex(s.Namespace) {
		if workload.Selects(d.Spec.Selector, s) {
			keys = append(keys, api.KeyOf(d))
		}
	}
	return keys
}

// emptied returns the Deployment of a deleted Pod, if it waits for its last Pod to go.
func (r *reconciler) emptied(p *workload.Pod) []api.Key {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil {
		return nil
	}
	s, found := r.cachedSets.Get(api.Key{Namespace: p.Namespace, Name: ref.Name})
	if !found || s.UID != ref.UID {
		return nil
	}
	ref = metav1.GetControllerOfNoCopy(s)
	if ref == nil {
		return nil
	}
	d, found := r.cachedDeployments.Get(api.Key{Namespace: p.Namespace, Name: ref.Name})
	if !found || d.UID != ref.UID || strategy(d) != appsv1.RecreateDeploymentStrategyType {
		return nil
	}
	for _, s := range r.setsByOwner.ByIndex(workload.Owner{Controller: d.UID}) {
		if r.podsByOwner.Len(workload.Owner{Controller: s.UID}) > 0 {
			return nil
		}
	}
	return []api.Key{api.KeyOf(d)}
}
