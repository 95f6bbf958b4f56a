package training

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/examples/trainingjob/job"
)

// TestUnclearReplicasAreDeleted deletes all objects of a job: an object with the job's label belongs to the job, even
// if its replica is unknown.
func TestUnclearReplicasAreDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.submit(1, asIs)
		orphan := metav1.ObjectMeta{
			Namespace: mnist.Namespace, Name: "unclear", Labels: map[string]string{job.LabelJob: "mnist", job.LabelType: "boss"},
		}
		_, err := w.server.Create(Pods, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: orphan})
		require.NoError(w, err)
		_, err = w.server.Create(Services, &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: orphan})
		require.NoError(w, err)
		synctest.Wait()
		require.Equal(w, 2, w.count(Pods))
		held := w.hold(Pods, watch.Deleted)
		w.edit(job.Resource, mnist.Name, func(u *unstructured.Unstructured) {
			require.NoError(w, unstructured.SetNestedField(u.Object, true, "spec", "suspend"))
		})
		w.touch()
		require.Zero(w, w.count(Pods), "nothing runs while the job is suspended")
		require.Zero(w, w.count(Services))
		require.Equal(w, 2, w.requests("delete", Pods), "and each deletion is expected and requested once")
		require.NoError(w, w.server.Delete(job.Resource, mnist))
		held.Remove()
		synctest.Wait()
		require.True(w, w.reconciler.expected.SatisfiedAll(batchesOf("")...))
		require.Zero(w, w.reconciler.expected.Len())
	})
}

// TestAProlongedLifeIsNoticed prolongs the time to live of a job when it ends, and hides the change from the cache.
func TestAProlongedLifeIsNoticed(t *testing.T) {
	inWorld(t, func(w *world) {
		ten := int32(10)
		w.submit(1, func(j *job.TrainingJob) { j.Spec.TTLSecondsAfterFinished = &ten })
		w.edit(Pods, "mnist-worker-0", phase(corev1.PodSucceeded))
		held := w.hold(job.Resource, watch.Modified)
		w.edit(job.Resource, mnist.Name, func(u *unstructured.Unstructured) {
			require.NoError(w, unstructured.SetNestedField(u.Object, int64(20), "spec", "ttlSecondsAfterFinished"))
		})
		pass(10 * time.Second)
		_, err := w.server.Get(job.Resource, mnist)
		require.NoError(w, err, "the time to live is not over")
		require.Equal(w, 1, w.requests("delete", job.Resource))
		held.Remove()
		pass(10 * time.Second)
		_, err = w.server.Get(job.Resource, mnist)
		require.Error(w, err)
		require.Zero(w, w.logs.Len())
	})
}

// TestTerminatingPodsAreNotExpected has Pods that terminate slowly. Only their own replicas wait for them.
func TestTerminatingPodsAreNotExpected(t *testing.T) {
	inWorld(t, func(w *world) {
		w.submit(1, asIs)
		w.edit(Pods, "mnist-worker-0", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"leat.example/flush"}) })
		held := w.hold(Pods, watch.Modified)
		w.edit(job.Resource, mnist.Name, func(u *unstructured.Unstructured) {
			require.NoError(w, unstructured.SetNestedField(u.Object, true, "spec", "suspend"))
		})
		uid := w.job().UID
		require.False(w, w.reconciler.expected.SatisfiedAll(batchesOf(uid)...))
		held.Remove()
		synctest.Wait()
		require.True(w, w.reconciler.expected.SatisfiedAll(batchesOf(uid)...))
		require.Equal(w, 1, w.count(Pods))
	})
}
