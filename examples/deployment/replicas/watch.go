package replicas

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/reconcile/owner"
)

// watch adds the sources of the controller: ReplicaSets, their Pods, and orphans that they may adopt. The source of
// Pods settles the expectations on the same goroutine and before it adds the key. The reconcile that an event of a Pod
// causes therefore does not wait for that Pod.
func (r *reconciler) watch(c *controller.Controller[api.Key], o Options) {
	if o.Shards != nil {
		c.Watch(o.Shards.Source())
	} else {
		c.Watch(controller.For(o.ReplicaSets.Informer()))
	}
	c.Watch(controller.Owns(o.ReplicaSets.Informer(), o.Pods.Informer()).When(r.observe, predicate.ResourceVersionChanged))
	c.Watch(controller.Map(o.Pods.Informer(), r.adopters).Named("orphans").
		Unless(predicate.Deleted).WhenAny(predicate.LabelsChanged, predicate.Changed(owner.ControllerOf[*workload.Pod])))
}

// observe settles the expectations of a Pod. It is a predicate that drops no change. The first change with a
// deletionTimestamp counts as the deletion; the later removal does not count again.
func (r *reconciler) observe(n api.Change[*workload.Pod]) bool {
	ref := metav1.GetControllerOfNoCopy(n.Object)
	if ref == nil {
		return true
	}
	key := api.Key{Namespace: n.Object.Namespace, Name: ref.Name}
	if s, found := r.cached.Get(key); !found || s.UID != ref.UID {
		return true // the ReplicaSet is gone or was replaced, so nothing is expected of the Pod
	}
	if n.Type == api.Added {
		r.expected.Created(key, 1)
	}
	if n.Type == api.Deleted || n.Object.DeletionTimestamp != nil {
		r.expected.Deleted(key, n.Object.UID)
	}
	return true
}

// adopters returns the ReplicaSets whose selectors match an orphan.
func (r *reconciler) adopters(p *workload.Pod) []api.Key {
	if owner.ControllerOf(p) != "" {
		return nil
	}
	var keys []api.Key
	for _, s := range r.byNamespace.ByIndex(p.Namespace) {
		if workload.Selects(s.Spec.Selector, p) {
			keys = append(keys, api.KeyOf(s))
		}
	}
	return keys
}
