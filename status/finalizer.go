package status

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddFinalizer adds a finalizer to an object, and tells whether it was not there.
// It corresponds to controllerutil.AddFinalizer of controller-runtime.
func AddFinalizer(object metav1.Object, finalizer string) bool {
	if HasFinalizer(object, finalizer) {
		return false
	}
	object.SetFinalizers(append(slices.Clone(object.GetFinalizers()), finalizer))
	return true
}

// RemoveFinalizer takes a finalizer from an object, and tells whether it was there.
// It corresponds to controllerutil.RemoveFinalizer of controller-runtime.
func RemoveFinalizer(object metav1.Object, finalizer string) bool {
	if !HasFinalizer(object, finalizer) {
		return false
	}
	object.SetFinalizers(slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == finalizer }))
	return true
}

// HasFinalizer tells whether an object has a finalizer.
// It corresponds to controllerutil.ContainsFinalizer of controller-runtime.
func HasFinalizer(object metav1.Object, finalizer string) bool {
	return slices.Contains(object.GetFinalizers(), finalizer)
}

// Finalizer leads an object that leaves traces elsewhere from its first reconcile to its end. Every field is required.
type Finalizer[T metav1.Object] struct {
	// Name is the finalizer, such as "example.org/volume".
	Name string
	// Copy returns a copy that may be changed: (*T).DeepCopy.
	Copy func(T) T
	// Update writes an object whose finalizers changed, and returns it as it was stored. It must not write one that
	// somebody else changed meanwhile.
	Update func(context.Context, T) (T, error)
	// Apply makes the traces, again at each reconcile.
	Apply func(context.Context, T) error
	// Cleanup removes them. It may be called again after it succeeded, and must not mind what is gone already.
	Cleanup func(context.Context, T) error
}

// Finalize does for an object, which may be from a cache, what its state asks for:
//
//	deletionTimestamp   finalizer   what is done
//	none                missing     it is added, then Apply
//	none                there       Apply
//	set                 there       Cleanup, and if that succeeded it is removed
//	set                 missing     nothing: this finalizer's part is over, or never began
//
// An error of Cleanup, or of a write, leaves the object where it is, to be reconciled again.
// It corresponds to the finalizer function of kube-rs.
func (f Finalizer[T]) Finalize(ctx context.Context, object T) error {
	dying, there := object.GetDeletionTimestamp() != nil, HasFinalizer(object, f.Name)
	switch {
	case dying && !there:
		return nil
	case dying:
		if err := f.Cleanup(ctx, object); err != nil {
			return fmt.Errorf("clean up for finalizer %s: %w", f.Name, err)
		}
		_, err := f.write(ctx, object, RemoveFinalizer)
		return err
	case !there:
		stored, err := f.write(ctx, object, AddFinalizer)
		if err != nil {
			return err
		}
		object = stored
	}
	return f.Apply(ctx, object)
}

func (f Finalizer[T]) write(ctx context.Context, object T, change func(metav1.Object, string) bool) (T, error) {
	object = f.Copy(object)
	change(object, f.Name)
	stored, err := f.Update(ctx, object)
	if err != nil {
		return stored, fmt.Errorf("write finalizer %s: %w", f.Name, err)
	}
	return stored, nil
}
