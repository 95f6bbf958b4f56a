package rollout

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// plainStatus returns the status without the progress of the rollout: the sums over the sets, and whether enough Pods
// are available.
func (w *draft) plainStatus() appsv1.DeploymentStatus {
	status := appsv1.DeploymentStatus{
		ObservedGeneration:  w.deployment.Generation,
		CollisionCount:      w.deployment.Status.CollisionCount,
		TerminatingReplicas: new(int32),
		Conditions:          w.conditions,
	}
	for _, s := range w.sets {
		status.Replicas += s.Status.Replicas
		status.ReadyReplicas += s.Status.ReadyReplicas
		status.AvailableReplicas += s.Status.AvailableReplicas
		status.TerminatingReplicas = sum(status.TerminatingReplicas, s)
	}
	if w.next != nil {
		status.UpdatedReplicas = w.next.Status.Replicas
	}
	status.UnavailableReplicas = max(total(w.sets)-status.AvailableReplicas, 0)
	if status.AvailableReplicas >= w.minAvailable() {
		w.set(&status, appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonAvailable, "Deployment has minimum availability.")
	} else {
		w.set(&status, appsv1.DeploymentAvailable, corev1.ConditionFalse, reasonUnavailable, "Deployment does not have minimum availability.")
	}
	return status
}

// sum adds the terminating Pods of a set. If a ReplicaSet controller does not count them, the sum is unknown.
func sum(terminating *int32, s *draftSet) *int32 {
	switch {
	case s.Status.TerminatingReplicas == nil && s.Status.ObservedGeneration == 0, terminating == nil:
		return terminating // the set has no status yet
	case s.Status.TerminatingReplicas == nil:
		return nil
	}
	n := *terminating + *s.Status.TerminatingReplicas
	return &n
}

// rolloutStatus returns the status with the progress of the rollout and the failures of the ReplicaSets.
func (w *draft) rolloutStatus() appsv1.DeploymentStatus {
	status := w.plainStatus()
	w.setProgress(&status)
	if failure := w.failure(); failure != nil {
		status.Conditions = put(status.Conditions, *failure)
	} else {
		remove(&status, appsv1.DeploymentReplicaFailure)
	}
	return status
}

// complete reports whether all wanted replicas have the current template and are available, and no others are left.
func complete(d *appsv1.Deployment, status *appsv1.DeploymentStatus) bool {
	n := replicas(d)
	return status.UpdatedReplicas == n && status.Replicas == n && status.AvailableReplicas == n &&
		status.ObservedGeneration >= d.Generation
}

// progressed reports whether there are more new Pods, fewer old ones, or more ready or available ones than before.
func progressed(before, now *appsv1.DeploymentStatus) bool {
	return now.UpdatedReplicas > before.UpdatedReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas
}

// setProgress sets the condition Progressing: complete, progressing or timed out.
func (w *draft) setProgress(status *appsv1.DeploymentStatus) {
	deadline, bounded := progressDeadline(w.deployment)
	if !bounded {
		remove(status, appsv1.DeploymentProgressing)
		return
	}
	now := find(w.conditions, appsv1.DeploymentProgressing)
	if now != nil && now.Reason == reasonComplete && status.Replicas == status.UpdatedReplicas {
		return // changes of Pods after a rollout are neither progress nor the lack of it
	}
	switch {
	case complete(w.deployment, status):
		w.set(status, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonComplete, w.subject()+" has successfully progressed.")
	case progressed(&w.deployment.Status, status):
		w.touch(status, appsv1.DeploymentProgressing, reasonUpdated, w.subject()+" is progressing.")
	case now != nil && w.late(now, deadline):
		w.set(status, appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut, w.subject()+" has timed out progressing.")
	}
}

// late reports whether the deadline has passed since the last progress of the rollout.
func (w *draft) late(progressing *appsv1.DeploymentCondition, deadline time.Duration) bool {
	switch progressing.Reason {
	case reasonComplete: // of an earlier rollout, which says nothing about this one
		return false
	case reasonTimedOut:
		return true
	}
	return progressing.LastUpdateTime.Add(deadline).Before(w.now)
}

// nextLook returns the time until the deadline of the rollout, because no event comes then. It adds a second because
// conditions have times in whole seconds.
func (w *draft) nextLook(status *appsv1.DeploymentStatus) time.Duration {
	deadline, bounded := progressDeadline(w.deployment)
	now := find(status.Conditions, appsv1.DeploymentProgressing)
	switch {
	case !bounded || now == nil || w.deployment.Spec.Paused || w.deployment.DeletionTimestamp != nil,
		now.Reason == reasonComplete || now.Reason == reasonTimedOut, complete(w.deployment, status):
		return 0
	}
	return max(now.LastUpdateTime.Add(deadline).Sub(w.now), 0) + time.Second
}
