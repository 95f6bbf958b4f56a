package plan_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
)

// TestFarDeadlines has deadlines that a time.Duration cannot hold. The job has the longest possible time instead, and
// does not time out at once.
func TestFarDeadlines(t *testing.T) {
	for _, seconds := range []int64{10_000_000_000, math.MaxInt64} {
		w := newWorld(newJob(job.Worker))
		w.Job.Spec.ActiveDeadlineSeconds = &seconds
		w.step()
		require.Equal(t, []string{job.Created}, w.truths(), "%d s", seconds)
		require.Greater(t, w.last.After, 200*365*24*time.Hour)
	}
}

// TestDisruptedPods expects that a disrupted Pod is replaced, whatever its exit code is.
func TestDisruptedPods(t *testing.T) {
	for _, c := range []struct {
		policy   job.RestartPolicy
		is       corev1.ConditionStatus
		replaced bool
	}{
		{job.ExitCode, corev1.ConditionTrue, true},
		{job.ExitCode, corev1.ConditionFalse, false},
		{job.Never, corev1.ConditionTrue, false},
	} {
		w := newWorld(newJob(job.Worker))
		change(w.Job, job.Worker, 1, c.policy)
		w.step()
		w.fails("worker-0", 1)
		w.pod("worker-0").Status.Conditions = []plan.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.DisruptionTarget, Status: c.is},
		}
		w.step()
		require.Equal(t, !c.replaced, job.Finished(w.Job), "%+v", c)
		require.Equal(t, c.replaced, slices.Contains(w.truths(), job.Restarting), "%+v", c)
	}
}

// TestLastRestart checks that the message names the Pod whose failure was one too many.
func TestLastRestart(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	change(w.Job, job.Worker, 1, job.ExitCode)
	limit := int32(0)
	w.Job.Spec.BackoffLimit = &limit
	w.step()
	w.fails("worker-0", 137)
	w.step()
	require.Equal(t, "BackoffLimitExceeded", w.reason(job.Failed))
	require.Equal(t, "1 restarts are needed, and 0 allowed: pod mnist-worker-0 failed with exit code 137", w.message(job.Failed))
}

// TestTheOrderOfPodsDoesNotMatter has two Pods with the labels of one replica. Neither has its name.
func TestTheOrderOfPodsDoesNotMatter(t *testing.T) {
	w := newWorld(newJob(job.Worker))
	for name, phase := range map[string]corev1.PodPhase{"a": corev1.PodSucceeded, "b": corev1.PodFailed} {
		w.Pods = append(w.Pods, &plan.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: plan.Labels(w.Job, plan.Replica{Type: job.Worker})},
			Status:     plan.PodStatus{Phase: phase},
		})
	}
	one := plan.Decide(w.Observed)
	slices.Reverse(w.Pods)
	other := plan.Decide(w.Observed)
	require.Equal(t, one.Status, other.Status)
	require.Equal(t, one.Notes, other.Notes)
}

func (w *world) message(kind string) string {
	for _, c := range w.Job.Status.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}
