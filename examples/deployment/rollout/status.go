package rollout

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// plainStatus counts what the sets say, and tells whether enough is available.
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
	if status.AvailableReplicas >= w.least() {
		w.set(&status, appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonAvailable, "Deployment has minimum availability.")
	} else {
		w.set(&status, appsv1.DeploymentAvailable, corev1.ConditionFalse, reasonUnavailable, "Deployment does not have minimum availability.")
	}
	return status
}

// sum adds the Pods of a set that are ending. A set whose controller does not count them makes the sum unknown.
func sum(terminating *int32, s *draftSet) *int32 {
	switch {
	case s.Status.TerminatingReplicas == nil && s.Status.ObservedGeneration == 0, terminating == nil:
		return terminating // nobody has looked at the set yet
	case s.Status.TerminatingReplicas == nil:
		return nil
	}
	n := *terminating + *s.Status.TerminatingReplicas
	return &n
}

// rolloutStatus adds to plainStatus how the rollout fares, and what the ReplicaSets complain about.
func (w *draft) rolloutStatus() appsv1.DeploymentStatus {
	status := w.plainStatus()
	w.judgeProgress(&status)
	if failure := w.failure(); failure != nil {
		status.Conditions = put(status.Conditions, *failure)
	} else {
		remove(&status, appsv1.DeploymentReplicaFailure)
	}
	return status
}

// complete tells whether all replicas that are wanted are of the present template and available, and no others are left.
func complete(d *appsv1.Deployment, status *appsv1.DeploymentStatus) bool {
	n := replicas(d)
	return status.UpdatedReplicas == n && status.Replicas == n && status.AvailableReplicas == n &&
		status.ObservedGeneration >= d.Generation
}

// progressed tells whether there are more new Pods, fewer old ones, or more that are ready or available than before.
func progressed(before, now *appsv1.DeploymentStatus) bool {
	return now.UpdatedReplicas > before.UpdatedReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas || now.AvailableReplicas > before.AvailableReplicas
}

// judgeProgress says in the Progressing condition whether the rollout has succeeded, moves on, or has not for too long.
func (w *draft) judgeProgress(status *appsv1.DeploymentStatus) {
	deadline, bounded := progressDeadline(w.deployment)
	if !bounded {
		remove(status, appsv1.DeploymentProgressing)
		return
	}
	now := find(w.conditions, appsv1.DeploymentProgressing)
	if now != nil && now.Reason == reasonComplete && status.Replicas == status.UpdatedReplicas {
		return // what happens to Pods after a rollout is no progress, and no lack of it
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

// late tells whether too long has passed since a rollout was last seen to move.
func (w *draft) late(progressing *appsv1.DeploymentCondition, deadline time.Duration) bool {
	switch progressing.Reason {
	case reasonComplete: // of the rollout before, which is no base to judge this one by
		return false
	case reasonTimedOut:
		return true
	}
	return progressing.LastUpdateTime.Add(deadline).Before(w.now)
}

// nextLook is how long to wait until a rollout that does not move is late: nothing else will happen to say so. The second
// more than the deadline is because conditions have whole seconds.
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
