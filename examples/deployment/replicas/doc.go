// Package replicas is the ReplicaSet controller: it makes Pods as many as their ReplicaSet wants.
//
// # Place in the pipeline
//
// At its end, below rollout, which makes the ReplicaSets. Read reconciler.go first, then manage.go for what is made and
// deleted, rank.go for which Pods go, status.go for the status, and watch.go for how expectations are settled.
//
// # Guarantees
//
//  1. Pods whose loss hurts least go first, by one order (TestOrderOfDeletion, TestPodsOnCrowdedNodesGoFirst).
//  2. The status counts no Pod whose deletion was asked for, whatever the cache still shows (TestDoomedPodsAreNotCounted).
//  3. Nothing is made or deleted twice because the cache is late (TestLateCacheMakesNoPodTwice); what fails or is not
//     tried is not waited for (TestFailedCreationsAreNotExpected).
//  4. A failure is told in a condition until it is over (TestFailureIsTold).
//
// # Concurrency
//
// Reconcile runs on the controller's workers, for different ReplicaSets at once. It makes few Pods at a time at first, then
// twice as many each time, and deletes all at once; it blocks until the last of those requests is answered.
//
// # Differences from client-go
//
// This is the replicaset controller of kube-controller-manager. There, a status may count Pods that were deleted a moment
// ago, and a namespace that ends leaves Pods expected which will never come. Everything else is meant to be the same.
package replicas
