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

// The reasons of conditions. kubectl and others know them.
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

// without returns the conditions but for one, in a slice of its own.
func without(conditions []appsv1.DeploymentCondition, kind appsv1.DeploymentConditionType) []appsv1.DeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

func remove(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	status.Conditions = without(status.Conditions, kind)
}

// set puts a condition among those of a status, unless it is there with that reason: a status is written when something
// changed, and a message alone is not worth it.
func (w *draft) set(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, is corev1.ConditionStatus, reason, message string) {
	status.Conditions = put(status.Conditions, condition(kind, is, reason, message, w.stamp()))
}

// touch is set for a condition that is true and has been seen to be so again, at a later time.
func (w *draft) touch(status *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, reason, message string) {
	status.Conditions = renew(status.Conditions, condition(kind, corev1.ConditionTrue, reason, message, w.stamp()))
}

func put(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	was := find(conditions, c.Type)
	if was != nil && was.Status == c.Status && was.Reason == c.Reason {
		return conditions
	}
	return renew(conditions, c)
}

// renew puts a condition in the place of the one of its type, whose status began when it began.
func renew(conditions []appsv1.DeploymentCondition, c appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
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

// stamp is the time of the decision as it is stored: in whole seconds, so that what is compared with what a server
// returned is the same.
func (w *draft) stamp() metav1.Time { return metav1.NewTime(w.now).Rfc3339Copy() }

// subject is what a condition is about.
func (w *draft) subject() string {
	if w.next == nil {
		return fmt.Sprintf("Deployment %q", w.deployment.Name)
	}
	return fmt.Sprintf("ReplicaSet %q", w.next.Name)
}

// notePause says that a Deployment was paused or resumed, so that the time in between is not held against its rollout.
// One that was late before stays late.
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

// noteFound begins to judge a rollout to a set that is there already, if nothing was said or only of a rollout to
// another set: that one's success would keep this one from ever being late, and its start would make it late too soon.
// What was said before a Deployment was paused stands until it is resumed.
func (w *draft) noteFound() {
	_, bounded := progressDeadline(w.deployment)
	if now := find(w.conditions, appsv1.DeploymentProgressing); bounded && !w.deployment.Spec.Paused && (now == nil || w.ofAnother(now)) {
		w.begin(reasonFound, fmt.Sprintf("Found new replica set %q", w.next.Name))
	}
}

// ofAnother tells whether a Progressing condition is about another set than the one of the present template. A
// condition has no field for that, and so its message tells, which has the name in quotes here and in Kubernetes.
func (w *draft) ofAnother(progressing *appsv1.DeploymentCondition) bool {
	switch progressing.Reason {
	case reasonCreated, reasonFound, reasonUpdated, reasonComplete, reasonTimedOut:
		return !strings.Contains(progressing.Message, strconv.Quote(w.next.Name))
	}
	return false
}

// noteCreated begins to judge a rollout, whatever was said of the one before.
func (w *draft) noteCreated() {
	if _, bounded := progressDeadline(w.deployment); bounded {
		w.begin(reasonCreated, fmt.Sprintf("Created new replica set %q", w.next.Name))
	}
}

// begin has a rollout progress from now on.
func (w *draft) begin(reason, message string) {
	w.conditions = renew(w.conditions, condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reason, message, w.stamp()))
}

func (w *draft) noteProgress(is corev1.ConditionStatus, reason, message string) {
	w.conditions = put(w.conditions, condition(appsv1.DeploymentProgressing, is, reason, message, w.stamp()))
}

// failure is what a ReplicaSet complains about, the new one's complaint first.
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
