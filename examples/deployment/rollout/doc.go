// Package rollout is the Deployment controller: it moves Deployments from one template of their Pods to the next, by
// way of a ReplicaSet for each.
//
// # Place in the pipeline
//
// At its end. The reconciler reads the Deployment, its ReplicaSets and their Pods from the caches; decide, which is
// pure, says what to change; the reconciler writes it. Read decide.go first, which is the whole controller in a table,
// then rolling.go, recreate.go and scale.go for the ways to change sizes, status.go and conditions.go for the status,
// and reconciler.go and change.go for what is written and how that may fail.
//
// # Guarantees
//
//  1. There are never more replicas than replicas+maxSurge, and never fewer available than replicas-maxUnavailable, by
//     what the controller does, however late its cache and the ReplicaSets are (TestRoll, TestBudgetHolds).
//  2. A rollout comes to its end from every state (TestBudgetHolds).
//  3. Recreate makes no new Pod before the last old one has ended (TestRecreateWaitsForTheLastPod).
//  4. A paused Deployment is scaled, and one that is being deleted is left alone (TestPausedAndDeletedMoveNothing).
//  5. A change of the number of replicas in mid-rollout is shared by the sets in proportion, and nothing is lost by the
//     rounding (TestDivide, TestDivideIsFair, TestScale, TestScaledIsForgotten).
//  6. Revisions count up, and a set that is rolled back to remembers its former ones (TestRevisions, TestHistoryIsCut).
//     A revision is written with the status, so that it is no new generation of the Deployment. A rollback makes the
//     present template a revision first; the tests of the program above show it.
//  7. Only old sets without Pods are cleaned up, and not those within the history that is to be kept (TestCleanUp).
//  8. Templates are compared by what they mean, and their hash is stable (TestTemplatesAreComparedByWhatTheyMean,
//     TestHash).
//  9. The Progressing condition tells a rollout that moves from one that is complete, paused or late, and somebody
//     looks when it would be late (TestProgress, TestPauseIsSaidUnlessItIsLate).
//  10. What no retry would mend is found before anything is done (TestCheck).
//
// # Concurrency
//
// Reconcile runs on the controller's workers, for different Deployments at once. One whose last writes the caches do
// not show yet waits without a worker. What Reconcile is given from the caches it never changes.
//
// # Differences from client-go
//
// This is the deployment controller of kube-controller-manager, decision for decision, with these exceptions.
// Availability is counted only where a ReplicaSet has observed its present size, and never as more than that size; so
// what it reports late cannot be spent twice. A decision waits until the cache shows the last one. A set that is scaled
// to the size that it has by chance is noted as scaled, unless its Deployment is paused. A rollout that returns to a
// set that is there is judged from its own beginning, whatever was said of the rollout to another set. A request for a
// rollback that is no number is answered instead of ignored; the set that records a template before a rollback gets no
// Pods. Sets with Pods do not keep Recreate from emptying the others when it is scaled at once. An invalid Deployment
// gets a condition.
package rollout
