// Package replicas is the ReplicaSet controller: it creates and deletes Pods until a ReplicaSet has the wanted number.
//
// Read reconciler.go first, then manage.go for creations and deletions, rank.go for the order of deletion, status.go
// for the status, and watch.go for expectations.
//
// # Example
//
// New returns the controller, which a manager runs:
//
//	c := replicas.New(replicas.Options{Client: client, ReplicaSets: sets, Pods: pods, Recorder: events})
//
// # Promises
//
//  1. When Pods are deleted, those whose loss costs least go first, in one total order.
//  2. The status does not count a Pod whose deletion was requested, even if the cache still shows it as active.
//  3. A late cache does not cause a second creation or deletion. A failed request is not awaited.
//  4. The condition ReplicaFailure reports a failure until it is over.
//
// # Concurrency
//
// Reconcile runs on the controller's workers, for different ReplicaSets at the same time. It creates Pods in batches of
// 1, 2, 4 and so on, and sends all deletions at once. It blocks until the last request is answered.
//
// # Differences from client-go
//
// This is the ReplicaSet controller of kube-controller-manager, with two differences. There, a status may count Pods
// that were deleted a moment ago. There, a terminating namespace leaves expectations of Pods that never come.
package replicas
