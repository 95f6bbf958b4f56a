package rollout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of conditions. Clients such as kubectl depend on them.
const (
	reasonAvailable   = "MinimumReplicasAvailable"
	reasonUnavailable = "MinimumReplicasUnavailable"

	reasonCreated  = "NewReplicaSetCreated"
	reasonFound    = "FoundNewReplicaSet"
	reasonUpdated  = "ReplicaSetUpdated"
	reasonComplete = "NewReplicaSetAvailable"
	reasonTimedOut = "ProgressDeadlineExceeded"
	reasonPaused   = "DeploymentPaused"
	reasonResumed  = "DeploymentResumed"
	reasonRefused  = "ReplicaSetCreateError"
	reasonInvalid  = "InvalidSpec"
)

func find(conditions []appsv1.DeploymentCondition, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	at := slices.IndexFunc(conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &conditions[at]
}

// without returns a copy of the conditions without those of one type.
func without(conditions []appsv1.DeploymentCondition, kind appsv1.DeploymentConditionType) []appsv1.DeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

func remove(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	status.Conditions = without(status.Conditions, kind)
}

// set sets a condition in a status. It does nothing if the status and the reason are the same: a different message
// alone is not worth a write.
func (w *draft) set(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason, message string) {
	status.Conditions = put(status.Conditions, condition(kind, is, reason, message, w.timestamp()))
}

// touch sets a condition to true, and updates its LastUpdateTime even if nothing else changes.
func (w *draft) touch(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, reason, message string) {
	status.Conditions = replaceCondition(status.Conditions, condition(kind, corev1.ConditionTrue, reason, message, w.timestamp()))
}

func put(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	was := find(conditions, c.Type)
	if was != nil && was.Status == c.Status && was.Reason == c.Reason {
		return conditions
	}
	return replaceCondition(conditions, c)
}

// replaceCondition replaces the condition of c's type. It keeps LastTransitionTime if the status is the same.
func replaceCondition(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	if was := find(conditions, c.Type); was != nil && was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return append(without(conditions, c.Type), c)
}

func condition(kind appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason, message string, at metav1.Time) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{
		Type: kind, Status: is, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at,
	}
}

// timestamp returns the time of the decision in whole seconds, as a server stores it. A comparison with a stored time
// is then exact.
func (w *draft) timestamp() metav1.Time { return metav1.NewTime(w.now).Rfc3339Copy() }

// subject returns the words with which the message of a condition begins.
func (w *draft) subject() string {
	if w.next == nil {
		return fmt.Sprintf("Deployment %q", w.deployment.Name)
	}
	return fmt.Sprintf("ReplicaSet %q", w.next.Name)
}

// notePause records that a Deployment was paused or resumed, so that the pause does not count towards the deadline. A
// rollout that has timed out stays timed out.
func (w *draft) notePause() {
	if _, bounded := progressDeadline(w.deployment); !bounded {
		return
	}
	now := find(w.conditions, appsv1.DeploymentProgressing)
	if now != nil && now.Reason == reasonTimedOut {
		return
	}
	switch paused := now != nil && now.Reason == reasonPaused; {
	case w.deployment.Spec.Paused && !paused:
		w.noteProgress(corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !w.deployment.Spec.Paused && paused:
		w.noteProgress(corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
	}
}

// noteFound starts the progress of a rollout to an existing set, if there is no Progressing condition or if it is about
// a rollout to another set that is not complete. Without this, the start of that rollout would cause an early timeout.
// The success of another rollout stays until there is progress, as with kube-controller-manager. The price: a rollout
// without any progress never times out then. While a Deployment is paused, the condition does not change.
func (w *draft) noteFound() {
	_, bounded := progressDeadline(w.deployment)
	if now := find(w.conditions, appsv1.DeploymentProgressing); bounded && !w.deployment.Spec.Paused && (now == nil || w.ofAnother(now)) {
		w.begin(reasonFound, fmt.Sprintf("Found new replica set %q", w.next.Name))
	}
}

// ofAnother reports whether a Progressing condition is about an incomplete rollout to another set than the one of the
// current template. A condition has no field for the set. Its message contains the name in quotes, here and in
// Kubernetes.
func (w *draft) ofAnother(progressing *appsv1.DeploymentCondition) bool {
	switch progressing.Reason {
	case reasonCreated, reasonFound, reasonUpdated, reasonTimedOut:
		return !strings.Contains(progressing.Message, strconv.Quote(w.next.Name))
	}
	return false
}

// noteCreated starts the progress of a rollout, whatever the earlier condition says.
func (w *draft) noteCreated() {
	if _, bounded := progressDeadline(w.deployment); bounded {
		w.begin(reasonCreated, fmt.Sprintf("Created new replica set %q", w.next.Name))
	}
}

// begin starts the progress of a rollout at the time of the decision.
func (w *draft) begin(reason, message string) {
	w.conditions = replaceCondition(w.conditions, condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reason, message, w.timestamp()))
}

func (w *draft) noteProgress(is corev1.ConditionStatus, reason, message string) {
	w.conditions = put(w.conditions, condition(appsv1.DeploymentProgressing, is, reason, message, w.timestamp()))
}

// failure returns the ReplicaFailure condition of a set, the new set's first.
func (w *draft) failure() *appsv1.DeploymentCondition {
	sets := w.sets
	if w.next != nil {
		sets = append([]*draftSet{w.next}, sets...)
	}
	for _, s := range sets {
		for _, c := range s.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				found := condition(appsv1.DeploymentReplicaFailure, c.Status, c.Reason, c.Message, c.LastTransitionTime)
				return &found
			}
		}
	}
	return nil
}
