package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

// Claimer settles, for one owner and one reconcile, which objects are the owner's. All fields are required.
// It corresponds to the PodControllerRefManager and its like of kube-controller-manager.
type Claimer[O, T metav1.Object] struct {
	// Owner is the owner as the reconcile knows it, which may be from a cache.
	Owner O
	// Resource is the owner's.
	Resource api.Resource
	// Selects tells whether the owner's selector picks an object.
	Selects func(T) bool
	// Live reads the owner anew, from the server and not from a cache. It is called at most once, before the first
	// adoption: a cache may still hold an owner that is gone, and what that adopts would be deleted with it.
	Live func(context.Context) (O, error)
	// Patch sends a merge patch (RFC 7386) for one object, and returns what became of it.
	Patch func(ctx context.Context, object T, mergePatch []byte) (T, error)

	asked bool // whether Live was called
	alive error
}

// Claim sorts objects, of the owner's namespace or of all, and returns those that are the owner's, adopted ones as the
// server stored them.
//
//	the object's controller   selected   and                                 it is
//	another                   –          –                                   left alone
//	the owner                 yes        –                                   kept
//	the owner                 no         the owner is being deleted          left alone
//	the owner                 no         –                                   released
//	none                      no         –                                   left alone
//	none                      yes        one of both is being deleted        left alone
//	none                      yes        it is in another namespace          left alone
//	none                      yes        the owner, read anew, is alive      adopted
//
// An orphan may list the owner already, without having it as its controller. Adoption makes that reference the
// controller's instead of adding a second one, and a release removes every reference to the owner.
//
// An object that is gone when its patch arrives counts as left alone; so does one that refuses its release as invalid,
// which is another incarnation. Other failures do not keep the rest from being sorted; they are returned joined, beside
// what was claimed.
func (c *Claimer[O, T]) Claim(ctx context.Context, objects []T) ([]T, error) {
	var mine []T
	var failed []error
	for _, object := range objects {
		claimed, ok, err := c.one(ctx, object)
		if err != nil {
			failed = append(failed, err)
		}
		if ok {
			mine = append(mine, claimed)
		}
	}
	return mine, errors.Join(failed...)
}

func (c *Claimer[O, T]) one(ctx context.Context, object T) (claimed T, mine bool, err error) {
	ref, selected := metav1.GetControllerOfNoCopy(object), c.Selects(object)
	switch {
	case ref != nil && ref.UID != c.Owner.GetUID():
		return object, false, nil
	case ref != nil && selected:
		return object, true, nil
	case c.Owner.GetDeletionTimestamp() != nil:
		return object, false, nil
	case ref != nil:
		return object, false, c.release(ctx, object)
	case !selected, object.GetDeletionTimestamp() != nil, !c.near(object):
		return object, false, nil
	}
	return c.adopt(ctx, object)
}

// near tells whether the owner may own an object where it lives.
func (c *Claimer[O, T]) near(object T) bool {
	return !c.Resource.Namespaced || object.GetNamespace() == c.Owner.GetNamespace()
}

func (c *Claimer[O, T]) adopt(ctx context.Context, object T) (T, bool, error) {
	wrap := func(err error) error { return fmt.Errorf("adopt %s: %w", api.FormatKey(keyOf(object)), err) }
	if !c.asked {
		c.asked, c.alive = true, c.stillThere(ctx)
	}
	if c.alive != nil {
		return object, false, wrap(c.alive)
	}
	ref := reference(c.Owner, c.Resource)
	yes, block := true, true
	ref.Controller, ref.BlockOwnerDeletion = &yes, &block
	adopted, err := c.Patch(ctx, object, patchOf(object, with(object.GetOwnerReferences(), ref)))
	switch {
	case apierrors.IsNotFound(err):
		return object, false, nil
	case err != nil:
		return object, false, wrap(err)
	}
	return adopted, true, nil
}

func (c *Claimer[O, T]) stillThere(ctx context.Context) error {
	live, err := c.Live(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read %s %s anew: %w", c.Resource.Kind, c.Owner.GetName(), err)
	case live.GetUID() != c.Owner.GetUID():
		return fmt.Errorf("owner: %s %s is gone: there is another of that name", c.Resource.Kind, c.Owner.GetName())
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("owner: %s %s is being deleted", c.Resource.Kind, c.Owner.GetName())
	}
	return nil
}

func (c *Claimer[O, T]) release(ctx context.Context, object T) error {
	_, err := c.Patch(ctx, object, patchOf(object, without(object.GetOwnerReferences(), c.Owner.GetUID())))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("release %s: %w", api.FormatKey(keyOf(object)), err)
}

// patchOf is the merge patch that gives an object these references if it is still the one that is known.
func patchOf(object metav1.Object, refs []metav1.OwnerReference) []byte {
	type metadata struct {
		UID             types.UID               `json:"uid"`
		ResourceVersion string                  `json:"resourceVersion,omitempty"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"` // null removes the field
	}
	if len(refs) == 0 {
		refs = nil
	}
	patch, err := json.Marshal(map[string]metadata{"metadata": {
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), OwnerReferences: refs,
	}})
	if err != nil {
		panic(fmt.Sprintf("owner: references cannot be written as JSON: %v", err)) // they are strings and booleans
	}
	return patch
}
