package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/examples/trainingjob/job"
)

var everybody = []string{"chief-0", "worker-0", "worker-1"}

// TestLifeOfAJob runs a job from its creation to its end, with one restart.
func TestLifeOfAJob(t *testing.T) {
	inProgram(t, func(w *world) {
		began := metav1.Now().Rfc3339Copy()
		w.submit(asIs)
		require.Equal(w, everybody, w.pods())
		require.Equal(w, everybody, w.services())
		require.Equal(w, "Created", w.state())
		require.True(w, w.job().Status.StartTime.Equal(&began))

		w.Pass(time.Second)
		w.runs("chief-0")
		require.Equal(w, "Created Running", w.state())
		w.runs("worker-0", "worker-1")
		require.Equal(w, map[job.ReplicaType]job.ReplicaStatus{job.Chief: {Active: 1}, job.Worker: {Active: 2}}, w.job().Status.Replicas)

		w.Pass(time.Second)
		w.ends("worker-1", corev1.PodFailed, 137)
		require.Equal(w, everybody, w.pods(), "there is a new Pod instead")
		require.Equal(w, "Created Restarting", w.state())
		require.EqualValues(w, 1, w.job().Status.Restarts)
		w.runs("worker-1")
		require.Equal(w, "Created Running", w.state())
		require.Empty(w, w.job().Status.Restarting)

		w.Pass(time.Second)
		w.ends("chief-0", corev1.PodSucceeded, 0)
		j := w.job()
		require.Equal(w, "Created Succeeded", w.state())
		require.Equal(w, 3*time.Second, j.Status.CompletionTime.Sub(began.Time))
		require.Equal(w, map[job.ReplicaType]job.ReplicaStatus{job.Chief: {Succeeded: 1}, job.Worker: {}}, j.Status.Replicas)
		require.Equal(w, []string{"chief-0"}, w.pods(), "it stays, so that a user can read its log")
		require.Empty(w, w.services())
		require.Empty(w, w.Errors())

		w.Pass(time.Minute)
		require.Equal(w, []string{
			"JobCreated", "JobRunning", "JobSucceeded", "ReplicaRestarting", "SuccessfulCreatePod", "SuccessfulCreateService",
			"SuccessfulDeletePod", "SuccessfulDeleteService",
		}, w.events())
		require.Equal(w, j.ResourceVersion, w.job().ResourceVersion, "there is no write without a change")
	})
}

func scaleWorkers(n int32) func(*job.TrainingJob) {
	return func(j *job.TrainingJob) {
		r := j.Spec.Replicas[job.Worker]
		r.Replicas = &n
		j.Spec.Replicas[job.Worker] = r
	}
}
