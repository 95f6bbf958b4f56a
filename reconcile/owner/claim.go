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

// Claimer decides, for one owner and one reconcile, which objects belong to the owner. All fields are required. It
// corresponds to the PodControllerRefManager and its like of kube-controller-manager.
type Claimer[O, T metav1.Object] struct {
	// Owner is the owner as the reconcile knows it. It may come from a cache.
	Owner O
	// Resource is the resource of the owner.
	Resource api.Resource
	// Selects reports whether the owner's selector matches an object.
	Selects func(T) bool
	// Live reads the owner from the server, not from a cache. It is called at most once, before the first adoption. A
	// cache may still hold an owner that was deleted, and the garbage collector would delete the objects that it
	// adopts.
	Live func(context.Context) (O, error)
	// Patch sends a merge patch (RFC 7386) for one object and returns the result.
	Patch func(ctx context.Context, object T, mergePatch []byte) (T, error)

	checked  bool // Live was called
	checkErr error
}

// Claim sorts objects, of the owner's namespace or of all namespaces. It returns the objects that belong to the owner.
// Adopted objects are returned as the server stored them.
//
//	controller of the object   selected   and                                     the object is
//	another                    –          –                                       ignored
//	the owner                  yes        –                                       kept
//	the owner                  no         the owner is being deleted              ignored
//	the owner                  no         –                                       released
//	none                       no         –                                       ignored
//	none                       yes        one of both is being deleted            ignored
//	none                       yes        it is in another namespace              ignored
//	none                       yes        the owner is alive, says the server     adopted
//
// An orphan may already list the owner without having it as its controller. Adoption then makes this reference the
// controller's and adds no second one. A release removes every reference to the owner.
//
// An object that is missing when its patch arrives is ignored. So is an object whose release is invalid, because
// another object has taken its name. Other errors do not end the loop; Claim returns them joined, together with the
// claimed objects.
func (c *Claimer[O, T]) Claim(ctx context.Context, objects []T) ([]T, error) {
	var mine []T
	var failed []error
	for _, object := range objects {
		claimed, ok, err := c.claimOne(ctx, object)
		if err != nil {
			failed = append(failed, err)
		}
		if ok {
			mine = append(mine, claimed)
		}
	}
	return mine, errors.Join(failed...)
}

func (c *Claimer[O, T]) claimOne(ctx context.Context, object T) (claimed T, mine bool, err error) {
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
	case !selected, object.GetDeletionTimestamp() != nil, !c.sameScope(object):
		return object, false, nil
	}
	return c.adopt(ctx, object)
}

// sameScope reports whether the owner may own an object in the object's namespace.
func (c *Claimer[O, T]) sameScope(object T) bool {
	return !c.Resource.Namespaced || object.GetNamespace() == c.Owner.GetNamespace()
}

func (c *Claimer[O, T]) adopt(ctx context.Context, object T) (T, bool, error) {
	wrap := func(err error) error { return fmt.Errorf("adopt %s: %w", api.FormatKey(keyOf(object)), err) }
	if !c.checked {
		c.checked, c.checkErr = true, c.checkLive(ctx)
	}
	if c.checkErr != nil {
		return object, false, wrap(c.checkErr)
	}
	ref := reference(c.Owner, c.Resource)
	yes, block := true, true
	ref.Controller, ref.BlockOwnerDeletion = &yes, &block
	adopted, err := c.Patch(ctx, object, patchOf(object, withReference(object.GetOwnerReferences(), ref)))
	switch {
	case apierrors.IsNotFound(err):
		return object, false, nil
	case err != nil:
		return object, false, wrap(err)
	}
	return adopted, true, nil
}

func (c *Claimer[O, T]) checkLive(ctx context.Context) error {
	live, err := c.Live(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read %s %s: %w", c.Resource.Kind, c.Owner.GetName(), err)
	case live.GetUID() != c.Owner.GetUID():
		return fmt.Errorf("owner: %s %s was deleted, and another object has its name", c.Resource.Kind, c.Owner.GetName())
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("owner: %s %s is being deleted", c.Resource.Kind, c.Owner.GetName())
	}
	return nil
}

func (c *Claimer[O, T]) release(ctx context.Context, object T) error {
	_, err := c.Patch(ctx, object, patchOf(object, withoutOwner(object.GetOwnerReferences(), c.Owner.GetUID())))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("release %s: %w", api.FormatKey(keyOf(object)), err)
}

// patchOf returns the merge patch that sets the references of an object, if the object has not changed since.
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
		panic(fmt.Sprintf("owner: references cannot be encoded as JSON: %v", err)) // they are strings and booleans
	}
	return patch
}
