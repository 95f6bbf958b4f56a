package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/trace"
	"github.com/leatproject/leat/workqueue"
)

var (
	replicaSets = api.Resource{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true}
	pods        = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
)

// replicaSet and pod have the fields that the controller of the demonstration needs. Its caches hold no other fields.
type replicaSet struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas int `json:"readyReplicas"`
	} `json:"status"`
}

type pod struct {
	metav1.ObjectMeta `json:"metadata"`
}

// newReplicas returns a controller that creates and deletes the pods of each ReplicaSet. What it holds back for the
// stepper goes on when gone is closed.
func newReplicas(d *demo, name string, gone <-chan struct{}) *controller.Controller[api.Key] {
	r := &replicas{
		demo: d,
		sets: apiclient.NewPartial[*replicaSet](d.client, replicaSets, ""),
		pods: apiclient.NewTyped[*unstructured.Unstructured](d.client, pods, ""),
	}
	c := controller.New(name, d.moody(r), controller.Options{Workers: 2})
	sets, owned := controller.For(d.sets), controller.Owns(d.sets, d.pods)
	if d.steps != nil {
		sets = sets.When(hold[*replicaSet](d.setBatches, "replicasets", gone))
		owned = owned.When(hold[*pod](d.podBatches, "pods", gone))
	}
	c.Watch(sets)
	c.Watch(owned)
	return c
}

// podsByOwner adds an index by the key of the owner.
func podsByOwner(pods *trace.Informer[*pod]) podIndex {
	return informer.AddIndex(pods.Informer, func(p *pod) []string {
		if owner := metav1.GetControllerOf(p); owner != nil {
			return []string{p.Namespace + "/" + owner.Name}
		}
		return nil
	})
}

type podIndex interface{ ByIndex(string) []*pod }

// replicas is the reconciler.
type replicas struct {
	demo *demo
	sets *apiclient.PartialClient[*replicaSet]
	pods *apiclient.TypedClient[*unstructured.Unstructured]
}

// Reconcile creates or deletes pods until a ReplicaSet has as many as it wants. The names of the pods follow from its
// own name. If the cache does not show the last write yet, a create fails with AlreadyExists, and there is no pod too
// many.
func (r *replicas) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	r.demo.out.Line("workqueue", key.Name, "%s", because(controller.Causes(ctx)))
	have := map[string]*pod{}
	for _, p := range r.demo.byOwner.ByIndex(key.String()) {
		have[p.Name] = p
	}
	set, exists := r.demo.sets.Cache().Get(key)
	want := 0
	if exists {
		want = set.Spec.Replicas
	}
	r.demo.out.Line("reconcile", key.Name, "%d of %d pods", len(have), want)
	for n := range want {
		name := fmt.Sprintf("%s-%d", key.Name, n)
		if have[name] == nil {
			if err := r.create(ctx, set, name); err != nil {
				return controller.Result{}, err
			}
		}
		delete(have, name)
	}
	kept := len(r.demo.byOwner.ByIndex(key.String())) - len(have)
	for name := range have {
		if err := r.delete(ctx, api.Key{Namespace: key.Namespace, Name: name}); err != nil {
			return controller.Result{}, err
		}
	}
	if !exists || set.Status.ReadyReplicas == kept {
		return controller.Result{}, nil
	}
	return controller.Result{}, r.report(ctx, key, kept)
}

func (r *replicas) create(ctx context.Context, set *replicaSet, name string) error {
	p := newPod(set.Namespace, name)
	p.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set, replicaSets.GroupVersionKind())})
	_, err := r.pods.Create(ctx, p, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (r *replicas) delete(ctx context.Context, key api.Key) error {
	err := r.pods.Delete(ctx, key, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// report writes the number of pods into the status.
func (r *replicas) report(ctx context.Context, key api.Key, ready int) error {
	patch, err := apiclient.MergePatch(map[string]any{"status": map[string]any{"readyReplicas": ready}})
	if err != nil {
		return err
	}
	_, err = r.sets.Patch(ctx, key, patch, apiclient.PatchOptions{Subresource: "status"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// because describes the causes of a reconcile.
func because(causes []workqueue.Cause) string {
	var all []string
	for _, c := range causes {
		what := fmt.Sprintf("%s of %s %s", c.Event, c.Source, c.Object)
		if !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	if len(all) == 0 {
		return "again"
	}
	return "because of " + strings.Join(all, ", ")
}

func newReplicaSet(key api.Key, replicas int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	u.SetGroupVersionKind(replicaSets.GroupVersionKind())
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	return u
}

func newPod(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "demo"}}},
	}}
	u.SetGroupVersionKind(pods.GroupVersionKind())
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
