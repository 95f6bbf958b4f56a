package replicas

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/examples/deployment/workload"
)

// ownedPods are the Pods of a ReplicaSet.
type ownedPods struct {
	active      []*workload.Pod
	terminating []*workload.Pod
}

// outcome is the result of creating or deleting Pods.
type outcome struct {
	tried  bool
	reason string // reason of the condition if err is not nil
	err    error
}

// statusOf returns the status of a ReplicaSet. It also returns the time until the next Pod has been ready for long
// enough to be available; zero means that no Pod will be.
func statusOf(s *appsv1.ReplicaSet, f ownedPods, o outcome, now time.Time) (status appsv1.ReplicaSetStatus, next time.Duration) {
	terminating := int32(len(f.terminating))
	status = appsv1.ReplicaSetStatus{
		Replicas: int32(len(f.active)), TerminatingReplicas: &terminating,
		ObservedGeneration: s.Generation,
		Conditions:         s.Status.Conditions,
	}
	template := labels.SelectorFromSet(s.Spec.Template.Labels)
	for _, p := range f.active {
		if template.Matches(labels.Set(p.Labels)) {
			status.FullyLabeledReplicas++
		}
		if _, ready := workload.Ready(p); ready {
			status.ReadyReplicas++
		}
		left, available := workload.Available(p, s.Spec.MinReadySeconds, now)
		switch {
		case available:
			status.AvailableReplicas++
		case left > 0 && (next == 0 || left < next):
			next = left
		}
	}
	if o.tried {
		status.Conditions = withFailure(status.Conditions, o, now)
	}
	return status, next
}

// withFailure returns the conditions with ReplicaFailure set after a failure, and without it after a success.
func withFailure(conditions []appsv1.ReplicaSetCondition, o outcome, now time.Time) []appsv1.ReplicaSetCondition {
	isFailure := func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }
	switch at := slices.IndexFunc(conditions, isFailure); {
	case o.err == nil:
		return slices.DeleteFunc(slices.Clone(conditions), isFailure)
	case at >= 0 && conditions[at].Reason == o.reason:
		return conditions
	default:
		return append(slices.DeleteFunc(slices.Clone(conditions), isFailure), appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: o.reason, Message: o.err.Error(),
			LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		})
	}
}
