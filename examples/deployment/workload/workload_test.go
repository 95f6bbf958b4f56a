package workload_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/deployment/workload"
)

func TestAvailable(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := func(status corev1.ConditionStatus, ago time.Duration) *workload.Pod {
		return &workload.Pod{Status: workload.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))},
		}}}
	}
	for name, c := range map[string]struct {
		pod     *workload.Pod
		seconds int32
		left    time.Duration
		want    bool
	}{
		"no condition":                    {&workload.Pod{}, 0, 0, false},
		"not ready":                       {pod(corev1.ConditionFalse, time.Hour), 0, 0, false},
		"not ready, with minReadySeconds": {pod(corev1.ConditionFalse, time.Hour), 5, 0, false},
		"ready":                           {pod(corev1.ConditionTrue, 0), 0, 0, true},
		"just ready":                      {pod(corev1.ConditionTrue, 0), 5, 5 * time.Second, false},
		"a nanosecond too early":          {pod(corev1.ConditionTrue, 5*time.Second-1), 5, 1, false},
		"exactly then":                    {pod(corev1.ConditionTrue, 5*time.Second), 5, 0, true},
		"ready at an unknown time":        {&workload.Pod{Status: workload.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}, 5, 0, false},
	} {
		left, available := workload.Available(c.pod, c.seconds, now)
		require.Equal(t, c.want, available, name)
		require.Equal(t, c.left, left, name)
	}
}

func TestOwnerOf(t *testing.T) {
	yes := true
	owned := &metav1.ObjectMeta{Namespace: "shop", OwnerReferences: []metav1.OwnerReference{{UID: "other"}, {UID: "u", Controller: &yes}}}
	require.Equal(t, []workload.Owner{{Controller: "u"}}, workload.OwnerOf(owned))
	require.Equal(t, []workload.Owner{{Namespace: "shop"}}, workload.OwnerOf(&metav1.ObjectMeta{Namespace: "shop"}))
}

func TestPhases(t *testing.T) {
	now := metav1.Now()
	for phase, finished := range map[corev1.PodPhase]bool{
		corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false, corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		p := &workload.Pod{Status: workload.PodStatus{Phase: phase}}
		require.Equal(t, !finished, workload.Active(p), phase)
		require.False(t, workload.Terminating(p), phase)
		p.DeletionTimestamp = &now
		require.False(t, workload.Active(p), phase)
		require.Equal(t, !finished, workload.Terminating(p), phase)
	}
}

func TestSelects(t *testing.T) {
	web := &workload.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	for name, c := range map[string]struct {
		selector *metav1.LabelSelector
		want     bool
	}{
		"none":      {nil, false},
		"empty":     {&metav1.LabelSelector{}, false},
		"its own":   {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, true},
		"another's": {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, false},
		"nonsense":  {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Likes"}}}, false},
	} {
		require.Equal(t, c.want, workload.Selects(c.selector, web), name)
	}
}
