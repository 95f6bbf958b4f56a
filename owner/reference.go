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
	ErrAlreadyOwned = errors.New("owner: the object has a controller already")
	// ErrImpossible is a reference that the garbage collector would take for one to an owner that is gone, and delete the
	// object for: across namespaces, or from a cluster-scoped object to a namespaced owner. It also is one to an owner that
	// was never stored, and so has no UID.
	ErrImpossible = errors.New("owner: impossible reference")
)

// AlreadyOwnedError says that an object has another controller.
// It corresponds to AlreadyOwnedError of controller-runtime.
type AlreadyOwnedError struct {
	Object api.Key
	Owner  metav1.OwnerReference // the controller that it has
}

// Error names the object and its controller.
func (e *AlreadyOwnedError) Error() string {
	return fmt.Sprintf("owner: %s is controlled by %s %s already", api.FormatKey(e.Object), e.Owner.Kind, e.Owner.Name)
}

// Is matches ErrAlreadyOwned.
func (e *AlreadyOwnedError) Is(target error) bool { return target == ErrAlreadyOwned }

// SetController makes owner, which is an object of the resource r, the controller of an object: garbage collection deletes
// the object after its owner, and a foreground deletion of the owner waits for it. The object must not come from a cache.
// An object that has another controller is an *AlreadyOwnedError, and a reference that cannot work is ErrImpossible; the
// object is unchanged then.
// It corresponds to controllerutil.SetControllerReference of controller-runtime.
func SetController(owner api.Object, r api.Resource, object metav1.Object) error {
	ref := reference(owner, r)
	yes, block := true, true
	ref.Controller, ref.BlockOwnerDeletion = &yes, &block
	if now := metav1.GetControllerOfNoCopy(object); now != nil && now.UID != ref.UID {
		return &AlreadyOwnedError{Object: keyOf(object), Owner: *now}
	}
	return set(object, ref, owner, r)
}

// Set makes owner one of the owners of an object without being its controller: garbage collection deletes the object when
// the last of its owners is gone. If owner is its controller, it is so no longer. The object must not come from a cache.
// It corresponds to controllerutil.SetOwnerReference of controller-runtime.
func Set(owner api.Object, r api.Resource, object metav1.Object) error {
	return set(object, reference(owner, r), owner, r)
}

// Remove takes owner, whatever it was to the object, from the object's owners and tells whether it was one of them.
// It corresponds to controllerutil.RemoveOwnerReference of controller-runtime, which fails if it was not.
func Remove(owner api.Object, object metav1.Object) bool {
	refs := object.GetOwnerReferences()
	left := without(refs, owner.GetUID())
	object.SetOwnerReferences(left)
	return len(left) != len(refs)
}

// ControllerOf returns the UID of an object's controller, and nothing for an orphan. It fits predicate.Changed.
func ControllerOf[T metav1.Object](object T) types.UID {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
		return ref.UID
	}
	return ""
}

// Controls tells whether an owner is an object's controller: this incarnation of it, for its UID counts.
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
	if err := possible(owner, r, object); err != nil {
		return err
	}
	object.SetOwnerReferences(with(object.GetOwnerReferences(), ref))
	return nil
}

// with returns the references with ref in the place of the first that has its UID, or at the end if none has. One owner
// has one reference: any others with the UID are left out. The slice that is given is unchanged.
func with(refs []metav1.OwnerReference, ref metav1.OwnerReference) []metav1.OwnerReference {
	at := slices.IndexFunc(refs, func(other metav1.OwnerReference) bool { return other.UID == ref.UID })
	if at < 0 {
		return append(slices.Clone(refs), ref)
	}
	return slices.Insert(without(refs, ref.UID), at, ref)
}

// without returns the references except those to one owner, in a slice of its own.
func without(refs []metav1.OwnerReference, owner types.UID) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
}

func possible(owner api.Object, r api.Resource, object metav1.Object) error {
	key := keyOf(object)
	switch {
	case r.Kind == "" || r.Version == "":
		return fmt.Errorf("%w: the owner's resource %+v lacks a kind or a version", ErrImpossible, r)
	case owner.GetUID() == "":
		return fmt.Errorf("%w: the owner %s %s has no UID: it was never stored", ErrImpossible, r.Kind, owner.GetName())
	case !r.Namespaced:
		return nil
	case key.Namespace == "":
		return fmt.Errorf("%w: %s is in no namespace, and its owner %s in %q", ErrImpossible, key.Name, r.Kind, owner.GetNamespace())
	case key.Namespace != owner.GetNamespace():
		return fmt.Errorf("%w: %s is in another namespace than its owner %s %s/%s",
			ErrImpossible, api.FormatKey(key), r.Kind, owner.GetNamespace(), owner.GetName())
	}
	return nil
}

func keyOf(object metav1.Object) api.Key {
	return api.Key{Namespace: object.GetNamespace(), Name: object.GetName()}
}
