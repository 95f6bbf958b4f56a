package replicas

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/owner"
	"github.com/leatproject/leat/predicate"
)

// watch says what a ReplicaSet is reconciled for: itself, its Pods, and those that it might adopt. What is expected of it
// is settled by the source of its Pods, on the same goroutine and before the key is added: a reconcile that was told of a
// Pod does not wait for it.
func (r *reconciler) watch(c *controller.Controller[api.Key], o Options) {
	c.Watch(controller.For(o.ReplicaSets))
	c.Watch(controller.Owns(o.ReplicaSets, o.Pods).When(r.observe, predicate.ResourceVersionChanged))
	c.Watch(controller.Map(o.Pods, r.adopters).Named("orphans").
		Unless(predicate.Deleted).WhenAny(predicate.LabelsChanged, predicate.Changed(owner.ControllerOf[*workload.Pod])))
}

// observe tells the expectations what happened to a Pod, and drops nothing. A Pod that was told to end counts as deleted
// from then on; that it ends then counts no more.
func (r *reconciler) observe(n informer.Notification[*workload.Pod]) bool {
	ref := metav1.GetControllerOfNoCopy(n.Object)
	if ref == nil {
		return true
	}
	key := api.Key{Namespace: n.Object.Namespace, Name: ref.Name}
	if s, found := r.cached.Get(key); !found || s.UID != ref.UID {
		return true // of an incarnation that is gone: nothing is expected of it
	}
	if n.Type == informer.Add {
		r.expected.Created(key, 1)
	}
	if n.Type == informer.Delete || n.Object.DeletionTimestamp != nil {
		r.expected.Deleted(key, n.Object.UID)
	}
	return true
}

// adopters are the ReplicaSets that select an orphan.
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
