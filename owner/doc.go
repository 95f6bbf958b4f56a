// Package owner says who belongs to whom: it writes owner references, and settles which of the objects that a selector
// picks an owner takes and which it lets go.
//
// # Place in the pipeline
//
// At its end, in the hands of a reconciler: what it creates it marks with SetController, and what it finds it sorts with a
// Claimer. controller.Owns leads events about the marked objects back to the owner. Nothing here talks to a server; the
// caller brings the function that sends a patch.
//
// # Guarantees
//
//  1. An object has at most one controller: a second is refused with an *AlreadyOwnedError that names the first
//     (TestSetController), and a reference that no server would accept, across namespaces or from a cluster-scoped object to
//     a namespaced owner, is refused before it is sent (TestReferencesThatNoServerAccepts).
//  2. Setting a reference again changes nothing, and a newer apiVersion of the same owner replaces the older one
//     (TestSetAgain).
//  3. Claim keeps, adopts, releases and leaves alone by one table (TestClaimTable), each row of which is independent of the
//     others' failures (TestClaimGoesOnAfterAFailure).
//  4. Nothing is adopted before the owner was read anew and found alive, once for all objects (TestAdoptionAsksOnce).
//  5. One owner has one reference: adoption makes a reference that is there the controller's, and adds none beside it
//     (TestAdoptionPromotes).
//  6. A patch names the UID and the version that it was made for, so that one that meets another incarnation, or an object
//     that somebody changed meanwhile, changes nothing (TestPatches).
//
// # Concurrency
//
// The functions are pure but for the objects that they are given, which belong to the caller: never pass one from a cache.
// A Claimer is for one reconcile, on one goroutine; Claim blocks as long as the functions that it was given.
//
// # Differences from client-go
//
// client-go has nothing of the kind. SetController corresponds to controllerutil.SetControllerReference of
// controller-runtime, which finds the owner's kind in a scheme instead of its resource; Claimer to the controller
// reference managers of kube-controller-manager, one for all types. Its patches are merge patches, which custom resources
// understand too, and carry the version, since a merge patch replaces the whole list of references.
//
// # Example
//
// See ExampleSetController and ExampleClaimer.
package owner
