// Package conditions changes the parts of an object that controllers write: its conditions, and the finalizers that
// keep an object until its external resources are removed. A reconciler changes a copy of the object with these
// functions, and writes it only if one of them reports a change.
//
// # Example
//
//	changed, err := conditions.Set(&web.Status.Conditions, metav1.Condition{
//		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Started", ObservedGeneration: web.Generation,
//	})
//	if changed {
//		// write the status
//	}
//
// See ExampleSet and ExampleFinalizer_Finalize.
//
// # Promises
//
//  1. The lastTransitionTime of a condition changes only when its status changes, so a reconcile without news writes
//     nothing.
//  2. Set rejects a condition that the API server would reject.
//  3. Adding an existing finalizer or removing a missing one changes nothing and returns false.
//  4. Finalize removes the finalizer only after Cleanup has succeeded, and does not call Apply for an object that is
//     being deleted.
//
// # Concurrency
//
// The functions change only the objects that they get, which must belong to the caller: never pass an object of a
// cache. Finalize is an exception; it copies the object. It blocks as long as the functions of its Finalizer.
//
// # Differences from client-go
//
// client-go has nothing like it. Set and Find correspond to meta.SetStatusCondition and FindStatusCondition of
// apimachinery, AddFinalizer and RemoveFinalizer to the functions with these names in controllerutil of
// controller-runtime, and Finalize to the finalizer function of kube-rs.
package conditions
