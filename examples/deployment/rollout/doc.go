// Package rollout is the Deployment controller: it replaces the Pods of an earlier template by Pods of the current one.
// It creates a ReplicaSet for each template, and changes the sizes of the sets.
//
// The reconciler reads the Deployment, its ReplicaSets and their Pods from caches. decide, a pure function, computes
// the changes, and the reconciler writes them. Read decide.go first: it has the whole controller in a table. Then read
// rolling.go, recreate.go and scale.go for sizes, status.go and conditions.go for the status, and reconciler.go and
// change.go for the writes and their failures.
//
// # Example
//
// New returns the controller, which a manager runs:
//
//	c := rollout.New(rollout.Options{
//		Deployments: deployments, ReplicaSets: sets, Pods: pods, Recorder: events,
//	})
//
// # Promises
//
//  1. The sum of all sizes stays within replicas + maxSurge, and the available Pods stay at or above replicas -
//     maxUnavailable, however late the cache and the ReplicaSets are. A rollout completes from every state.
//  2. With Recreate, new Pods are created only after the last old Pod is gone.
//  3. A paused Deployment is scaled and not rolled out. A deleted Deployment is not changed.
//  4. Scaling during a rollout changes the sets in proportion to their sizes. Rounding loses no replica.
//  5. Revisions increase. A set that is rolled back to records its earlier revisions. Before a rollback, the current
//     template gets a revision. A revision is written with the status and causes no new generation.
//  6. Only old sets without Pods, beyond the history limit, are deleted.
//  7. Templates are compared by their meaning, and the hash of a template is stable.
//  8. The condition Progressing reports whether a rollout progresses, is complete, is paused or has timed out, exactly
//     at its deadline. An error that no retry can repair is found before any write.
//
// # Concurrency
//
// Reconcile runs on the controller's workers, for different Deployments at the same time. A Deployment whose last
// writes are not in the caches yet waits without a worker. Reconcile does not change the objects of the caches.
//
// # Differences from client-go
//
// This is the Deployment controller of kube-controller-manager, with these differences:
//
//   - Available Pods count only if the ReplicaSet has observed its current size, and not beyond that size.
//   - A decision waits until the cache shows the writes of the last one.
//   - A set that already has the right size gets the annotations of scaling, unless its Deployment is paused.
//   - A rollout to an existing set has its own deadline, even after one to another set has begun or timed out.
//     After a success it has none until there is progress, as in the original.
//   - A rollback request that is not a number is answered instead of ignored. The set that records the current template
//     before a rollback gets no Pods.
//   - Sets with Pods do not prevent Recreate from scaling down when the Deployment is scaled at the same time.
//   - An invalid Deployment gets a condition.
package rollout
