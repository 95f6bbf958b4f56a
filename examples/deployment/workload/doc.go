// Package workload has what the controllers of this example share: the resources, the fields of a Pod that they read,
// and the index of objects by controller.
//
// # Example
//
//	byOwner := informer.AddIndex(sets, workload.OwnerOf[*appsv1.ReplicaSet])
//	own := byOwner.ByIndex(workload.Owner{Controller: deployment.UID})
//
// Pod declares a twentieth of a Pod's fields, and the caches hold only these.
//
// # Promises
//
//  1. A Pod is available exactly when it has been ready for minReadySeconds.
//  2. Each object is in the index once: under its controller, or under its namespace if it is an orphan.
//  3. A selector that is empty or invalid matches no object.
//
// # Concurrency
//
// All functions are pure.
package workload
