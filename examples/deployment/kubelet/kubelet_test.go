package kubelet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/deployment/workload"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// pod returns a Pod without a node that was created at noon.
func pod() *workload.Pod {
	return &workload.Pod{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)},
		Spec:       workload.PodSpec{Containers: []workload.Container{{Name: "main", Image: "web:1"}}},
	}
}

func TestLifeOfAPod(t *testing.T) {
	o := Options{Start: 3 * time.Second, Stop: 2 * time.Second}
	p := pod()
	expect := func(at time.Duration, want step, after time.Duration) {
		t.Helper()
		do, wait := o.next(p, noon.Add(at))
		require.Equal(t, want, do)
		require.Equal(t, after, wait)
	}
	expect(0, bind, 0)
	p.Spec.NodeName = "node-1"
	expect(time.Second, start, 2*time.Second)
	expect(4*time.Second, start, 0)
	started := statusAt(p, start, metav1.NewTime(noon))
	p.Status.Phase, p.Status.Conditions = started.Phase, started.Conditions
	_, ready := workload.Ready(p)
	require.True(t, ready)
	expect(time.Hour, nothing, 0)

	// A server sets the deletionTimestamp to the end of the grace period.
	grace := int64(30)
	deadline := metav1.NewTime(noon.Add(time.Hour + 30*time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deadline, &grace
	expect(time.Hour, end, 2*time.Second)
	expect(time.Hour+5*time.Second, end, 0)
	p.Status.Phase = corev1.PodFailed
	expect(time.Hour+5*time.Second, end, 0)
	p.Spec.NodeName = ""
	expect(time.Hour, nothing, 0)
}

func TestFinishedPodsStayFinished(t *testing.T) {
	p := pod()
	p.Status.Phase = corev1.PodSucceeded
	do, _ := Options{}.next(p, noon)
	require.Equal(t, nothing, do)
}

func TestBrokenImages(t *testing.T) {
	p := pod()
	p.Spec.NodeName, p.Spec.Containers[0].Image = "node-1", "web:broken"
	do, after := Options{Start: time.Hour}.next(p, noon)
	require.Equal(t, fail, do)
	require.Zero(t, after)
	failed := statusAt(p, fail, metav1.NewTime(noon))
	require.Equal(t, corev1.PodPending, failed.Phase)
	require.Equal(t, "ImagePullBackOff", failed.ContainerStatuses[0].State.Waiting.Reason)
	p.Status = workload.PodStatus{Phase: failed.Phase, Conditions: failed.Conditions, ContainerStatuses: make([]workload.ContainerStatus, 1)}
	_, ready := workload.Ready(p)
	require.False(t, ready)
	do, _ = Options{}.next(p, noon.Add(time.Hour))
	require.Equal(t, nothing, do, "the status is written once")
}
