package rollout

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/owner"
	"github.com/leatproject/leat/predicate"
)

// watch says what a Deployment is reconciled for: itself, its ReplicaSets, those that it might adopt and, while it waits
// for the last Pod to go, that.
func (r *reconciler) watch(c *controller.Controller[api.Key], o Options) {
	c.Watch(controller.For(o.Deployments))
	c.Watch(controller.Owns(o.Deployments, o.ReplicaSets).When(predicate.ResourceVersionChanged))
	c.Watch(controller.Map(o.ReplicaSets, r.adopters).Named("orphans").
		Unless(predicate.Deleted).WhenAny(predicate.LabelsChanged, predicate.Changed(owner.ControllerOf[*appsv1.ReplicaSet])))
	c.Watch(controller.Map(o.Pods, r.emptied).Named("last pods").When(predicate.Deleted))
}

// adopters are the Deployments that select an orphan: more than one only where selectors overlap, and then who comes
// first has it.
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

// emptied is the Deployment that a deleted Pod was of, if it waits for the last one to go.
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
	for _, s := range r.setsByKeeper.ByIndex(workload.Keeper{Controller: d.UID}) {
		if r.podsByKeeper.Len(workload.Keeper{Controller: s.UID}) > 0 {
			return nil
		}
	}
	return []api.Key{api.KeyOf(d)}
}
