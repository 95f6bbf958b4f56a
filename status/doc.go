// Package status holds what controllers write about objects: conditions, and the finalizers that keep an object until its
// traces are removed.
//
// # Place in the pipeline
//
// At its end, in the hands of a reconciler, which changes a copy with these functions and writes it if one of them says
// that something changed.
//
// # Guarantees
//
//  1. A condition's lastTransitionTime changes when its status does and at no other time (TestSet), so that a reconcile
//     that finds nothing new writes nothing.
//  2. A condition that a server would refuse is refused before it is sent (TestSetRefusesWhatServersDo).
//  3. Adding a finalizer that is there, or removing one that is not, changes nothing and says so (TestFinalizers).
//  4. Finalize never lets an object go before its clean-up succeeded, and never starts work on one that is going
//     (TestFinalize).
//
// # Concurrency
//
// The functions are pure but for the objects that they are given, which belong to the caller: never pass one from a cache.
// Finalize blocks as long as the functions that it was given.
//
// # Differences from client-go
//
// client-go has nothing of the kind. Set and Find correspond to meta.SetStatusCondition and FindStatusCondition of
// apimachinery, AddFinalizer and RemoveFinalizer to the functions of that name in controllerutil of controller-runtime, and
// Finalize to the finalizer function of kube-rs.
//
// # Example
//
// See ExampleSet and ExampleFinalizer_Finalize.
package status
