package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/discovery"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/workqueue"
)

// unseen is the time after which the collector looks again at an object whose owner exists and is in no cache yet, or
// at an owner whose dependents are in no cache yet. The cache of a new resource has them soon. Until then, a deletion
// would be missed.
const unseen = time.Second

// reconcile takes the next step for one object.
func (c *Collector) reconcile(ctx context.Context, i id) (controller.Result, error) {
	w := c.get(i.Resource)
	if w == nil {
		return controller.Result{}, nil
	}
	o, found := w.informer.Cache().Get(i.Key)
	if !found {
		return controller.Result{}, nil
	}
	result, err := w.settle(ctx, o)
	if apierrors.IsNotFound(err) {
		err = nil // somebody else has deleted it; the event follows
	}
	return result, err
}

func (w *watched) settle(ctx context.Context, o *item) (controller.Result, error) {
	switch {
	case o.orphaning():
		return controller.Result{}, w.orphan(ctx, o)
	case o.foreground():
		return w.finishForeground(ctx, o)
	case o.deleting():
		return controller.Result{}, nil
	}
	var result controller.Result
	bonds := make([]bond, len(o.Metadata.OwnerReferences))
	for i := range bonds {
		b, cached, err := w.bond(ctx, o, i)
		if err != nil {
			return controller.Result{}, err
		}
		if bonds[i] = b; b != absent && b != invalid && !cached {
			result.RequeueAfter = unseen
		}
	}
	if len(bonds) == 0 {
		return controller.Result{}, nil
	}
	var dependents []*item
	for _, d := range w.dependents(o.GetUID()) {
		dependents = append(dependents, d)
	}
	return result, w.do(ctx, o, decide(o, bonds, dependents))
}

// bond returns the state of an owner. cached reports that the state is that of a cache. The caches may be behind, so an
// owner is absent only if the server says so. A reference with another version than that of the cache counts only if
// the server has this version.
func (w *watched) bond(ctx context.Context, o *item, number int) (b bond, cached bool, err error) {
	r := o.Metadata.OwnerReferences[number]
	known, from := w.cachedOwner(o, number)
	if known != nil && from.resource.GroupVersion().String() == r.APIVersion {
		return bondOf(known), true, nil
	}
	if w.deleted(o, number) {
		return absent, false, nil
	}
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return invalid, false, nil
	}
	resource, err := w.mapper.ForKind(ctx, gv.WithKind(r.Kind))
	switch {
	case errors.Is(err, discovery.ErrUnknownResource):
		return invalid, false, fmt.Errorf("collect: the owner %s %s of %s: %w", r.Kind, r.Name, w.id(o), err)
	case err != nil:
		return invalid, false, err
	case resource.Namespaced && o.GetNamespace() == "":
		return invalid, false, w.reportOtherNamespace(ctx, o, number)
	}
	owner, err := apiclient.NewPartial[*item](w.Collector.client, resource.Resource, "").Get(ctx, ownerKey(resource.Resource, o, r.Name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && owner.GetUID() != r.UID:
		return absent, false, w.reportOtherNamespace(ctx, o, number)
	case err != nil:
		return invalid, false, err
	}
	return bondOf(owner), known != nil, nil
}

// deleted reports whether the collector has seen the deletion of an owner.
func (w *watched) deleted(o *item, number int) bool {
	r := o.Metadata.OwnerReferences[number]
	owner := reference{r.APIVersion, r.Kind, "", r.Name, r.UID}
	if w.gone.has(owner) {
		return true
	}
	owner.namespace = o.GetNamespace()
	return w.gone.has(owner)
}

// reportOtherNamespace writes an Event about an object whose owner is in another namespace.
func (w *watched) reportOtherNamespace(ctx context.Context, o *item, number int) error {
	r := o.Metadata.OwnerReferences[number]
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return nil
	}
	kind := w.ofKind(gv.WithKind(r.Kind).GroupKind())
	about := reference{r.APIVersion, r.Kind, string(o.GetUID()), r.Name, r.UID}
	if kind == nil || !kind.resource.Namespaced || w.reported.has(about) {
		return nil
	}
	elsewhere, err := kind.elsewhere(ctx, r.UID, o)
	if err == nil && elsewhere && w.reported.add(about) {
		w.events.Warning(w.resource, o, "OwnerRefInvalidNamespace", "ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			r.APIVersion, r.Kind, o.GetNamespace(), r.Name, r.UID, o.GetNamespace())
	}
	return err
}

// elsewhere reports whether an owner exists outside of the namespace of its dependent. The owner is older than the
// dependent, so a cache that is not older than the dependent knows it. Otherwise it
// lists the owner's kind.
func (w *watched) elsewhere(ctx context.Context, owner types.UID, dependent *item) (bool, error) {
	found := false
	look := func(o *item) { found = found || o.GetUID() == owner && o.GetNamespace() != dependent.GetNamespace() }
	if order, ok := api.CompareVersions(w.informer.ResourceVersion(), dependent.GetResourceVersion()); ok && order >= 0 {
		for _, o := range w.informer.Cache().All() {
			look(o)
		}
		return found, nil
	}
	_, err := w.client.List(ctx, api.Options[*item]{}, func(o *item) error {
		look(o)
		return nil
	})
	return found, err
}

func bondOf(owner *item) bond {
	if owner.foreground() {
		return waiting
	}
	return solid
}

// do carries out a decision. Each request names the version that the decision is about, so a change that was made
// meanwhile is a conflict, and the decision is made again.
func (w *watched) do(ctx context.Context, o *item, v verdict) error {
	switch v.step {
	case keep:
		return nil
	case release:
		return w.release(ctx, o, v.drop...)
	case unblock:
		refs := slices.Clone(o.Metadata.OwnerReferences)
		for i := range refs {
			refs[i].BlockOwnerDeletion = nil
		}
		changed, err := w.patch(ctx, o, map[string]any{"ownerReferences": refs})
		if err != nil {
			return err
		}
		o = changed
	}
	return w.client.Delete(ctx, api.KeyOf(o), metav1.DeleteOptions{
		PropagationPolicy: &v.policy,
		Preconditions:     &metav1.Preconditions{UID: &o.Metadata.UID, ResourceVersion: &o.Metadata.ResourceVersion},
	})
}

// release removes references to owners.
func (w *watched) release(ctx context.Context, o *item, owners ...types.UID) error {
	refs := slices.DeleteFunc(slices.Clone(o.Metadata.OwnerReferences), func(r metav1.OwnerReference) bool {
		return slices.Contains(owners, r.UID)
	})
	if len(refs) == len(o.Metadata.OwnerReferences) {
		return nil
	}
	_, err := w.patch(ctx, o, map[string]any{"ownerReferences": refs})
	return err
}

// patch changes metadata of the version that the collector knows.
func (w *watched) patch(ctx context.Context, o *item, metadata map[string]any) (*item, error) {
	metadata["uid"], metadata["resourceVersion"] = o.Metadata.UID, o.Metadata.ResourceVersion
	patch, err := apiclient.MergePatch(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	return w.client.Patch(ctx, api.KeyOf(o), patch, apiclient.PatchOptions{})
}

// withoutFinalizer removes a finalizer.
func (w *watched) withoutFinalizer(ctx context.Context, o *item, finalizer string) error {
	left := slices.DeleteFunc(slices.Clone(o.Metadata.Finalizers), func(f string) bool { return f == finalizer })
	_, err := w.patch(ctx, o, map[string]any{"finalizers": left})
	return err
}

// finishForeground lets an owner go when no dependent blocks its deletion any more. Until then, it causes the deletion
// of the dependents that block it.
func (w *watched) finishForeground(ctx context.Context, o *item) (controller.Result, error) {
	blocked := false
	for from, d := range w.dependents(o.GetUID()) {
		if !d.blocks(o.GetUID()) {
			continue
		}
		blocked = true
		if !d.deleting() {
			w.controller.Add(from.id(d), workqueue.Item{})
		}
	}
	if blocked {
		return controller.Result{}, nil
	}
	blocked, err := w.anyLive(ctx, o, func(_ *watched, d *item) (bool, error) { return d.blocks(o.GetUID()), nil })
	if err != nil {
		return controller.Result{}, err
	}
	if blocked {
		return controller.Result{RequeueAfter: unseen}, nil // the caches will show the dependent
	}
	return controller.Result{}, w.withoutFinalizer(ctx, o, metav1.FinalizerDeleteDependents)
}

// orphan releases the dependents of an owner, and then lets it go.
func (w *watched) orphan(ctx context.Context, o *item) error {
	_, err := w.anyLive(ctx, o, func(from *watched, d *item) (bool, error) {
		err := from.release(ctx, d, o.GetUID())
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	return w.withoutFinalizer(ctx, o, metav1.FinalizerOrphanDependents)
}

// anyLive calls visit with the dependents that the server has, until it returns true or an error. The caches may lack
// dependents that were just created, and once the finalizer of the owner is gone, they could not be treated as its
// deletion requests. The price is a list of each resource.
func (w *watched) anyLive(ctx context.Context, owner *item, visit func(*watched, *item) (bool, error)) (bool, error) {
	for _, from := range w.all() {
		if !from.resource.Namespaced && owner.GetNamespace() != "" {
			continue
		}
		found, err := from.listDependents(ctx, owner)
		if apierrors.IsNotFound(err) {
			continue // the resource is gone
		}
		if err != nil {
			return false, err
		}
		for _, d := range found {
			if done, err := visit(from, d); done || err != nil {
				return done, err
			}
		}
	}
	return false, nil
}

func (w *watched) listDependents(ctx context.Context, owner *item) ([]*item, error) {
	client := w.client
	if w.resource.Namespaced && owner.GetNamespace() != "" {
		client = apiclient.NewPartial[*item](w.Collector.client, w.resource, owner.GetNamespace())
	}
	var found []*item
	_, err := client.List(ctx, api.Options[*item]{}, func(o *item) error {
		if slices.Contains(ownersOf(o), owner.GetUID()) {
			found = append(found, o)
		}
		return nil
	})
	return found, err
}
