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

// family is what a ReplicaSet has.
type family struct {
	active      []*workload.Pod
	terminating []*workload.Pod
}

// outcome is what came of making a ReplicaSet's Pods as many as it wants.
type outcome struct {
	tried  bool
	reason string // of the condition if err is not nil
	err    error
}

// statusOf counts, and says whether Pods could be made and deleted. It also tells when the next Pod will have been ready
// for long enough to be available; zero is that none will.
func statusOf(s *appsv1.ReplicaSet, f family, o outcome, now time.Time) (status appsv1.ReplicaSetStatus, next time.Duration) {
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
		status.Conditions = judge(status.Conditions, o, now)
	}
	return status, next
}

// judge says in the ReplicaFailure condition what failed, and that it fails no more.
func judge(conditions []appsv1.ReplicaSetCondition, o outcome, now time.Time) []appsv1.ReplicaSetCondition {
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
