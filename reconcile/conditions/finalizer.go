package conditions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// AddFinalizer adds a finalizer to an object, and reports whether it was missing. It corresponds to
// controllerutil.AddFinalizer of controller-runtime.
func AddFinalizer(object metav1.Object, finalizer string) bool {
	if HasFinalizer(object, finalizer) {
		return false
	}
	object.SetFinalizers(append(slices.Clone(object.GetFinalizers()), finalizer))
	return true
}

// RemoveFinalizer removes a finalizer from an object, and reports whether it was there. It corresponds to
// controllerutil.RemoveFinalizer of controller-runtime.
func RemoveFinalizer(object metav1.Object, finalizer string) bool {
	if !HasFinalizer(object, finalizer) {
		return false
	}
	object.SetFinalizers(slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == finalizer }))
	return true
}

// HasFinalizer reports whether an object has a finalizer. It corresponds to controllerutil.ContainsFinalizer of
// controller-runtime.
func HasFinalizer(object metav1.Object, finalizer string) bool {
	return slices.Contains(object.GetFinalizers(), finalizer)
}

// Finalizer manages an object with external resources, from its first reconcile to its delete. Every field except Copy
// is required; Finalize returns an error that names a missing one.
type Finalizer[T metav1.Object] struct {
	// Name is the finalizer, such as "example.org/volume".
	Name string
	// Copy returns a copy that may be changed. Nil means [api.Clone], which needs no DeepCopy functions.
	Copy func(T) T
	// Update writes an object whose finalizers changed, and returns the stored object. It must fail if the object was
	// changed meanwhile.
	Update func(context.Context, T) (T, error)
	// Apply creates or updates the external resources. Every reconcile calls it.
	Apply func(context.Context, T) error
	// Cleanup removes the external resources. It may be called again after success, and must accept that resources are
	// already gone.
	Cleanup func(context.Context, T) error
}

// Finalize handles an object, which may come from a cache, according to its state:
//
//	deletionTimestamp   finalizer   action
//	not set             missing     adds the finalizer, then calls Apply
//	not set             present     calls Apply
//	set                 present     calls Cleanup; if that succeeds, removes the finalizer
//	set                 missing     nothing; the work of this finalizer is done or never began
//
// After an error of Cleanup or of a write, the object keeps its state and must be reconciled again. It corresponds to
// the finalizer function of kube-rs.
func (f Finalizer[T]) Finalize(ctx context.Context, object T) error {
	if err := f.validate(); err != nil {
		return err
	}
	dying, there := object.GetDeletionTimestamp() != nil, HasFinalizer(object, f.Name)
	switch {
	case dying && !there:
		return nil
	case dying:
		if err := f.Cleanup(ctx, object); err != nil {
			return fmt.Errorf("conditions: clean up for finalizer %s: %w", f.Name, err)
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

// validate returns the errors of all missing fields, whatever the state of an object is. Without it, a missing function
// would panic later, and only for the objects that need it.
func (f Finalizer[T]) validate() error {
	var wrong []error
	for field, missing := range map[string]bool{
		"Name": f.Name == "", "Update": f.Update == nil, "Apply": f.Apply == nil, "Cleanup": f.Cleanup == nil,
	} {
		if missing {
			wrong = append(wrong, fmt.Errorf("conditions: Finalizer.%s is missing", field))
		}
	}
	return errors.Join(wrong...)
}

func (f Finalizer[T]) write(ctx context.Context, object T, change func(metav1.Object, string) bool) (T, error) {
	clone := f.Copy
	if clone == nil {
		clone = api.Clone[T]
	}
	object = clone(object)
	change(object, f.Name)
	stored, err := f.Update(ctx, object)
	if err != nil {
		return stored, fmt.Errorf("conditions: write finalizer %s: %w", f.Name, err)
	}
	return stored, nil
}
