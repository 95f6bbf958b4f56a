package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/training"
	"github.com/leatproject/leat/testkit"
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

// TestReplicas checks the Pods and Services of a job.
func TestReplicas(t *testing.T) {
	inProgram(t, func(w *world) {
		w.submit(asIs)
		p := testkit.List[*corev1.Pod](w.Kit, training.Pods, "")[2]
		require.Equal(w, w.job().UID, metav1.GetControllerOf(p).UID)
		require.Equal(w, map[string]string{job.LabelJob: "mnist", job.LabelType: "worker", job.LabelIndex: "1"}, p.Labels)
		require.Equal(w, corev1.RestartPolicyNever, p.Spec.RestartPolicy)
		var config map[string]any
		require.Equal(w, "TF_CONFIG", p.Spec.Containers[0].Env[0].Name)
		require.NoError(w, json.Unmarshal([]byte(p.Spec.Containers[0].Env[0].Value), &config))
		require.Equal(w, map[string]any{
			"cluster": map[string]any{
				"chief":  []any{"mnist-chief-0.lab.svc:2222"},
				"worker": []any{"mnist-worker-0.lab.svc:2222", "mnist-worker-1.lab.svc:2222"},
			},
			"task":        map[string]any{"type": "worker", "index": float64(1)},
			"environment": "cloud",
		}, config)
		s := testkit.List[*corev1.Service](w.Kit, training.Services, "")[2]
		require.Equal(w, corev1.ClusterIPNone, s.Spec.ClusterIP)
		require.Equal(w, p.Labels, s.Spec.Selector)
		require.EqualValues(w, 2222, s.Spec.Ports[0].Port)
		require.Equal(w, w.job().UID, metav1.GetControllerOf(s).UID)
	})
}

func scaleWorkers(n int32) func(*job.TrainingJob) {
	return func(j *job.TrainingJob) {
		r := j.Spec.Replicas[job.Worker]
		r.Replicas = &n
		j.Spec.Replicas[job.Worker] = r
	}
}

func TestWorkersComeAndGo(t *testing.T) {
	inProgram(t, func(w *world) {
		w.submit(asIs)
		w.edit(scaleWorkers(4))
		require.Equal(w, []string{"chief-0", "worker-0", "worker-1", "worker-2", "worker-3"}, w.pods())
		require.Equal(w, w.pods(), w.services())
		w.edit(scaleWorkers(1))
		require.Equal(w, []string{"chief-0", "worker-0"}, w.pods())
		require.Equal(w, w.pods(), w.services())
		w.edit(func(j *job.TrainingJob) { delete(j.Spec.Replicas, job.Worker) })
		require.Equal(w, []string{"chief-0"}, w.pods())
		require.NoError(w, w.Server.Delete(training.Pods, api.Key{Namespace: "lab", Name: "mnist-chief-0"}))
		require.NoError(w, w.Server.Delete(training.Services, api.Key{Namespace: "lab", Name: "mnist-chief-0"}))
		w.Idle()
		require.Equal(w, []string{"chief-0"}, w.pods(), "a deleted Pod is created again")
		require.Equal(w, []string{"chief-0"}, w.services())
		require.Zero(w, w.job().Status.Restarts)
		require.Empty(w, w.Errors())
	})
}

// TestDynamicWorkers changes the number of workers of a running job. The other Pods are not restarted, and the job
// succeeds with its worker 0.
func TestDynamicWorkers(t *testing.T) {
	inProgram(t, func(w *world) {
		w.submit(func(j *job.TrainingJob) {
			j.Spec.EnableDynamicWorker = true
			j.Spec.Replicas[job.PS] = j.Spec.Replicas[job.Chief]
			j.Spec.Replicas[job.Evaluator] = j.Spec.Replicas[job.Chief]
			delete(j.Spec.Replicas, job.Chief)
		})
		fixed := []string{"evaluator-0", "ps-0", "worker-0"}
		w.runs("ps-0", "worker-0", "worker-1", "evaluator-0")
		uid := func(name string) types.UID {
			u, err := w.Server.Get(training.Pods, api.Key{Namespace: "lab", Name: "mnist-" + name})
			require.NoError(w, err)
			return u.GetUID()
		}
		before := map[string]types.UID{}
		for _, name := range fixed {
			before[name] = uid(name)
		}
		w.edit(scaleWorkers(4))
		require.Equal(w, append(slices.Clone(fixed), "worker-1", "worker-2", "worker-3"), w.pods())
		w.runs("worker-2", "worker-3")
		require.EqualValues(w, 4, w.job().Status.Replicas[job.Worker].Active)
		w.edit(scaleWorkers(1))
		require.Equal(w, fixed, w.pods())
		require.Equal(w, fixed, w.services())
		for name, was := range before {
			require.Equal(w, was, uid(name), name)
		}
		require.Equal(w, "Created Running", w.state())
		require.Zero(w, w.job().Status.Restarts)
		w.ends("worker-0", corev1.PodSucceeded, 0)
		require.Equal(w, "Created Succeeded", w.state())
		require.Equal(w, []string{"worker-0"}, w.pods(), "the evaluator goes with the parameter server")
		require.Empty(w, w.Errors())
	})
}

func TestSuspendAndResume(t *testing.T) {
	inProgram(t, func(w *world) {
		w.submit(func(j *job.TrainingJob) { j.Spec.Suspend = true })
		require.Empty(w, w.pods())
		require.Equal(w, "Created Suspended", w.state())
		require.Nil(w, w.job().Status.StartTime)

		w.Pass(time.Minute)
		ten := int64(10)
		w.edit(func(j *job.TrainingJob) { j.Spec.Suspend, j.Spec.ActiveDeadlineSeconds = false, &ten })
		require.Equal(w, everybody, w.pods())
		require.Equal(w, "JobResumed", w.reason(job.Suspended))
		w.runs("chief-0")
		require.Equal(w, "Created Running", w.state())

		w.Pass(9 * time.Second)
		w.edit(func(j *job.TrainingJob) { j.Spec.Suspend = true })
		require.Empty(w, w.pods())
		require.Empty(w, w.services())
		require.Equal(w, "Created Suspended", w.state())
		w.Pass(time.Hour)
		require.Equal(w, "Created Suspended", w.state(), "the deadline does not apply while the job is suspended")

		w.edit(func(j *job.TrainingJob) { j.Spec.Suspend = false })
		w.Pass(10*time.Second - 1)
		require.Equal(w, "Created", w.state(), "the deadline starts again")
		w.Pass(1)
		require.Equal(w, "Created Failed", w.state())
		require.Equal(w, "DeadlineExceeded", w.reason(job.Failed))
		require.Empty(w, w.pods())
	})
}

func TestTimeToLive(t *testing.T) {
	for _, policy := range []job.CleanPodPolicy{job.CleanNone, job.CleanRunning, job.CleanAll} {
		inProgram(t, func(w *world) {
			minute := int32(60)
			w.submit(func(j *job.TrainingJob) { j.Spec.TTLSecondsAfterFinished, j.Spec.CleanPodPolicy = &minute, policy })
			w.runs(everybody...)
			w.ends("chief-0", corev1.PodSucceeded, 0)
			left := map[job.CleanPodPolicy][]string{job.CleanNone: everybody, job.CleanRunning: {"chief-0"}, job.CleanAll: {}}
			require.Equal(w, left[policy], w.pods())
			w.Pass(time.Minute - 1)
			require.Equal(w, "Created Succeeded", w.state())
			w.Pass(1)
			require.Empty(w, w.names(job.Resource))
			require.Empty(w, w.Errors())
		})
	}
}

// TestBackoffLimit has a job that allows two restarts, by the kubelet or by the controller.
func TestBackoffLimit(t *testing.T) {
	inProgram(t, func(w *world) {
		two := int32(2)
		w.submit(func(j *job.TrainingJob) { j.Spec.BackoffLimit = &two })
		for n := range int32(2) {
			w.ends("worker-0", corev1.PodFailed, 143)
			require.Equal(w, n+1, w.job().Status.Restarts)
			w.program.Stop()
			w.start() // a new process knows the earlier restarts
		}
		w.ends("worker-0", corev1.PodFailed, 143)
		require.Equal(w, "BackoffLimitExceeded", w.reason(job.Failed))
		require.EqualValues(w, 2, w.job().Status.Restarts)
		require.Equal(w, []string{"worker-0"}, w.pods())
	})
}
