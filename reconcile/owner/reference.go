package owner

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
)

var (
	// ErrAlreadyOwned matches every *AlreadyOwnedError.
	ErrAlreadyOwned = errors.New("owner: the object already has a controller")
	// ErrImpossible is the error of a reference that cannot work: across namespaces, from a cluster-scoped object to a
	// namespaced owner, or to an owner without a UID, which was never stored. The garbage collector would not find such
	// an owner and would delete the object.
	ErrImpossible = errors.New("owner: impossible reference")
)

// AlreadyOwnedError is the error for an object that has another controller. It corresponds to AlreadyOwnedError of
// controller-runtime.
type AlreadyOwnedError struct {
	Object api.Key
	Owner  metav1.OwnerReference // the present controller
}

// Error names the object and its controller.
func (e *AlreadyOwnedError) Error() string {
	return fmt.Sprintf("owner: %s is already controlled by %s %s", api.FormatKey(e.Object), e.Owner.Kind, e.Owner.Name)
}

// Is reports whether target is ErrAlreadyOwned.
func (e *AlreadyOwnedError) Is(target error) bool { return target == ErrAlreadyOwned }

// SetController makes owner, an object of the resource r, the controller of an object. The garbage collector deletes
// the object after its owner, and a foreground deletion of the owner waits for it. The object must not come from a
// cache. The error is an *AlreadyOwnedError if the object has another controller, and ErrImpossible if the reference
// cannot work; the object is then unchanged. It corresponds to controllerutil.SetControllerReference of
// controller-runtime.
func SetController(owner api.Object, r api.Resource, object metav1.Object) error {
	ref := reference(owner, r)
	yes, block := true, true
	ref.Controller, ref.BlockOwnerDeletion = &yes, &block
	if now := metav1.GetControllerOfNoCopy(object); now != nil && now.UID != ref.UID {
		return &AlreadyOwnedError{Object: keyOf(object), Owner: *now}
	}
	return set(object, ref, owner, r)
}

// Set makes owner one of the owners of an object, without being its controller. The garbage collector deletes the
// object after its last owner. If owner is the controller of the object, it stays an owner only. The object must not
// come from a cache. It corresponds to controllerutil.SetOwnerReference of controller-runtime.
func Set(owner api.Object, r api.Resource, object metav1.Object) error {
	return set(object, reference(owner, r), owner, r)
}

// Remove removes owner from the owners of an object, and reports whether it was one of them. It corresponds to
// controllerutil.RemoveOwnerReference of controller-runtime, which returns an error if it was not.
func Remove(owner api.Object, object metav1.Object) bool {
	refs := object.GetOwnerReferences()
	left := withoutOwner(refs, owner.GetUID())
	object.SetOwnerReferences(left)
	return len(left) != len(refs)
}

// ControllerOf returns the UID of an object's controller, or "" for an orphan. It fits predicate.Changed.
func ControllerOf[T metav1.Object](object T) types.UID {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		return ref.UID
	}
	return ""
}

// Controls reports whether an owner is an object's controller. It compares UIDs, so another object with the owner's
// name is not.
func Controls(owner api.Object, object metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && ref.UID == owner.GetUID()
}

func reference(owner api.Object, r api.Resource) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: r.GroupVersion().String(), Kind: r.Kind, Name: owner.GetName(), UID: owner.GetUID(),
	}
}

func set(object metav1.Object, ref metav1.OwnerReference, owner api.Object, r api.Resource) error {
	if err := checkReference(owner, r, object); err != nil {
		return err
	}
	object.SetOwnerReferences(withReference(object.GetOwnerReferences(), ref))
	return nil
}

// withReference returns the references with ref at the place of the first one with the same UID, or at the end. It
// removes other references with this UID, because an owner has one reference. The given slice is unchanged.
func withReference(refs []metav1.OwnerReference, ref metav1.OwnerReference) []metav1.OwnerReference {
	at := slices.IndexFunc(refs, func(other metav1.OwnerReference) bool { return other.UID == ref.UID })
	if at < 0 {
		return append(slices.Clone(refs), ref)
	}
	return slices.Insert(withoutOwner(refs, ref.UID), at, ref)
}

// withoutOwner returns the references except those to one owner, in a new slice.
func withoutOwner(refs []metav1.OwnerReference, owner types.UID) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
}

func checkReference(owner api.Object, r api.Resource, object metav1.Object) error {
	key := keyOf(object)
	switch {
	case r.Kind == "" || r.Version == "":
		return fmt.Errorf("%w: the owner's resource %+v lacks a kind or a version", ErrImpossible, r)
	case owner.GetUID() == "":
		return fmt.Errorf("%w: the owner %s %s has no UID, because it was never stored", ErrImpossible, r.Kind, owner.GetName())
	case !r.Namespaced:
		return nil
	case key.Namespace == "":
		return fmt.Errorf("%w: %s has no namespace, and its owner %s is in namespace %q", ErrImpossible, key.Name, r.Kind, owner.GetNamespace())
	case key.Namespace != owner.GetNamespace():
		return fmt.Errorf("%w: %s and its owner %s %s/%s are in different namespaces",
			ErrImpossible, api.FormatKey(key), r.Kind, owner.GetNamespace(), owner.GetName())
	}
	return nil
}

func keyOf(object metav1.Object) api.Key {
	return api.Key{Namespace: object.GetNamespace(), Name: object.GetName()}
}
