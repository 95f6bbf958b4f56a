package training

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/trainingjob/job"
	"github.com/leatproject/leat/examples/trainingjob/plan"
	"github.com/leatproject/leat/reconcile/expectations"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// TestLateCachesMakeNothingTwice hides new objects of one kind, or of both, from the caches. A satisfied expectation of
// one kind does not replace the one of the other kind.
func TestLateCachesMakeNothingTwice(t *testing.T) {
	for _, late := range [][]api.Resource{{Pods}, {Services}, {Pods, Services}} {
		inWorld(t, func(w *world) {
			var held []*testserver.Injection
			for _, r := range late {
				held = append(held, w.hold(r, watch.Added))
			}
			w.submit(3, asIs)
			before := len(w.reports)
			for range 3 {
				w.touch()
				pass(10 * time.Second)
			}
			require.GreaterOrEqual(w, len(w.reports), before+3)
			require.Equal(w, 3, w.requests("create", Pods))
			require.Equal(w, 3, w.requests("create", Services))
			require.Equal(w, len(late), w.reconciler.expected.Len())
			for _, h := range held {
				h.Remove()
			}
			synctest.Wait()
			require.Zero(w, w.reconciler.expected.Len())
			w.touch()
			require.Equal(w, 3, w.requests("create", Pods))
			require.Equal(w, 3, w.requests("create", Services))
			require.Zero(w, w.logs.Len())
		})
	}
}

// TestTypesAreExpectedTogether shows the Pods of one type to the cache and hides those of another.
func TestTypesAreExpectedTogether(t *testing.T) {
	inWorld(t, func(w *world) {
		held := w.server.Inject(faults.Fault{
			Match: faults.Match{
				Verbs: []string{"watch"}, Resource: "pods", Name: "mnist-worker-2", Frames: []watch.EventType{watch.Added},
			},
			Effect: faults.Hold{},
		})
		w.submit(3, func(j *job.TrainingJob) { j.Spec.Replicas[job.PS] = j.Spec.Replicas[job.Worker] })
		w.edit(Pods, "mnist-ps-0", phase(corev1.PodRunning))
		require.Equal(w, 6, w.requests("create", Pods))
		held.Remove()
		synctest.Wait()
		require.Equal(w, 6, w.requests("create", Pods))
	})
}

// TestLateDeletionsAreAwaited hides the end of a Pod from the cache.
func TestLateDeletionsAreAwaited(t *testing.T) {
	inWorld(t, func(w *world) {
		w.submit(2, asIs)
		modified, deleted := w.hold(Pods, watch.Modified), w.hold(Pods, watch.Deleted)
		w.edit(Pods, "mnist-worker-1", phase(corev1.PodFailed))
		require.Zero(w, w.requests("delete", Pods))
		modified.Remove()
		synctest.Wait()
		for range 3 {
			w.touch()
		}
		require.Equal(w, 1, w.requests("delete", Pods))
		require.Equal(w, 2, w.requests("create", Pods))
		require.EqualValues(w, 1, w.job().Status.Restarts)
		deleted.Remove()
		synctest.Wait()
		require.Equal(w, 3, w.requests("create", Pods))
		require.Equal(w, 2, w.count(Pods))
		require.EqualValues(w, 1, w.job().Status.Restarts)
		require.Zero(w, w.logs.Len())
	})
}

// TestDeadlinesDoNotWait reaches the deadline of a job while the caches are late.
func TestDeadlinesDoNotWait(t *testing.T) {
	inWorld(t, func(w *world) {
		held := w.hold(Pods, watch.Added)
		ten := int64(10)
		w.submit(2, func(j *job.TrainingJob) { j.Spec.ActiveDeadlineSeconds = &ten })
		pass(10 * time.Second)
		require.True(w, job.Finished(w.job()))
		require.Equal(w, 2, w.count(Pods))
		held.Remove()
		synctest.Wait()
		require.Zero(w, w.count(Pods))
	})
}

// TestExpectationsEnd loses a Pod before the cache shows it.
func TestExpectationsEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.Inject(faults.Fault{
			Match:  faults.Match{Verbs: []string{"watch"}, Resource: "pods", Name: "mnist-worker-1"},
			Effect: faults.Drop{},
		})
		w.submit(2, asIs)
		w.server.Heal()
		require.NoError(w, w.server.Delete(Pods, api.Key{Namespace: "lab", Name: "mnist-worker-1"}))
		pass(expectations.DefaultTimeout)
		require.Equal(w, 1, w.count(Pods))
		pass(time.Second)
		require.Equal(w, 2, w.count(Pods))
	})
}

func TestExpectationsGoWithTheirJob(t *testing.T) {
	inWorld(t, func(w *world) {
		held := w.hold(Pods, watch.Added)
		w.submit(2, asIs)
		require.Equal(w, 1, w.reconciler.expected.Len())
		require.NoError(w, w.server.Delete(job.Resource, mnist))
		synctest.Wait()
		require.Zero(w, w.reconciler.expected.Len())
		for _, name := range []string{"mnist-worker-0", "mnist-worker-1"} { // as the garbage collector does
			require.NoError(w, w.server.Delete(Pods, api.Key{Namespace: "lab", Name: name}))
			require.NoError(w, w.server.Delete(Services, api.Key{Namespace: "lab", Name: name}))
		}
		w.submit(2, asIs)
		require.Equal(w, 2, w.count(Pods), "a new job of the same name does not wait for the old expectations")
		held.Remove()
		synctest.Wait()
		require.Zero(w, w.reconciler.expected.Len())
		require.Equal(w, 4, w.requests("create", Pods))
	})
}

// TestStatusIsWrittenOnce hides the written status from the cache while Pods change.
func TestStatusIsWrittenOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.submit(2, asIs)
		writes := w.requests("update", job.Resource)
		held := w.hold(job.Resource, watch.Modified)
		w.edit(Pods, "mnist-worker-0", phase(corev1.PodRunning))
		require.Equal(w, writes+1, w.requests("update", job.Resource))
		w.edit(Pods, "mnist-worker-1", phase(corev1.PodRunning))
		require.Equal(w, writes+1, w.requests("update", job.Resource), "there is no reconcile before the cache shows the write")
		held.Remove()
		synctest.Wait()
		require.Equal(w, writes+1, w.requests("update", job.Resource), "both run, as before")
		require.Zero(w, w.logs.Len())
	})
}

// TestCountsFollowTheWrite has a server that refuses the first writes.
func TestCountsFollowTheWrite(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.reconciler.counts
		w.server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"update"}, Resource: job.Resource.String()}, Times: 3, Effect: faults.Fail{Code: 500},
		})
		w.submit(2, asIs)
		require.Zero(w, c.Created.Load())
		require.Zero(w, w.count(Pods), "nothing is created before the first status was written")
		pass(time.Minute)
		require.EqualValues(w, 1, c.Created.Load())
		require.Equal(w, 2, w.count(Pods))
		w.edit(Pods, "mnist-worker-1", phase(corev1.PodFailed))
		w.edit(Pods, "mnist-worker-0", phase(corev1.PodSucceeded))
		w.touch()
		require.EqualValues(w, 1, c.Created.Load())
		require.EqualValues(w, 1, c.Restarted.Load())
		require.EqualValues(w, 1, c.Succeeded.Load())
		require.Zero(w, c.Failed.Load())
	})
}

// TestNamesakesAreSpared replaces a job by another of the same name, which the cache does not show yet, when its time
// to live ends.
func TestNamesakesAreSpared(t *testing.T) {
	inWorld(t, func(w *world) {
		ten := int32(10)
		w.submit(1, func(j *job.TrainingJob) { j.Spec.TTLSecondsAfterFinished = &ten })
		w.edit(Pods, "mnist-worker-0", phase(corev1.PodSucceeded))
		deleted, added := w.hold(job.Resource, watch.Deleted), w.hold(job.Resource, watch.Added)
		require.NoError(w, w.server.Delete(job.Resource, mnist))
		w.submit(2, asIs)
		uid := w.job().UID
		pass(10 * time.Second)
		require.Equal(w, 1, w.requests("delete", job.Resource))
		require.Equal(w, uid, w.job().UID)
		deleted.Remove()
		added.Remove()
		require.Zero(w, w.logs.Len())
	})
}

// TestPodsOfTheSameNameAreSpared has a foreign Pod with the name of a Pod to be deleted.
func TestPodsOfTheSameNameAreSpared(t *testing.T) {
	inWorld(t, func(w *world) {
		w.submit(1, asIs)
		w.hold(Pods, watch.Deleted)
		w.hold(Pods, watch.Added)
		key := api.Key{Namespace: "lab", Name: "mnist-worker-0"}
		require.NoError(w, w.server.Delete(Pods, key))
		_, err := w.server.Create(Pods, &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		})
		require.NoError(w, err)
		w.edit(job.Resource, mnist.Name, func(u *unstructured.Unstructured) {
			require.NoError(w, unstructured.SetNestedField(u.Object, true, "spec", "suspend"))
		})
		require.NotZero(w, w.requests("delete", Pods))
		require.Equal(w, 1, w.count(Pods))
		w.server.Heal()
		synctest.Wait()
		require.Zero(w, w.logs.Len())
	})
}

// TestDefaultsAreNotStored has a job without optional fields. The controller applies the defaults and does not write
// them.
func TestDefaultsAreNotStored(t *testing.T) {
	inWorld(t, func(w *world) {
		open := func(j *job.TrainingJob) {
			j.Spec.Replicas[job.Worker] = job.ReplicaSpec{Template: j.Spec.Replicas[job.Worker].Template}
		}
		w.submit(0, open)
		u, err := w.server.Get(Pods, api.Key{Namespace: "lab", Name: "mnist-worker-0"})
		require.NoError(w, err)
		policy, _, err := unstructured.NestedString(u.Object, "spec", "restartPolicy")
		require.NoError(w, err)
		require.Equal(w, "Never", policy)
		j := w.job()
		require.Empty(w, j.Spec.CleanPodPolicy)
		require.Nil(w, j.Spec.Replicas[job.Worker].Replicas)
		require.Zero(w, w.logs.Len())
	})
}

func TestAdoption(t *testing.T) {
	inWorld(t, func(w *world) {
		w.submit(2, asIs)
		uid := w.job().UID
		for _, r := range []api.Resource{Pods, Services} {
			w.edit(r, "mnist-worker-0", func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
			u, err := w.server.Get(r, api.Key{Namespace: "lab", Name: "mnist-worker-0"})
			require.NoError(w, err)
			require.Equal(w, uid, metav1.GetControllerOf(u).UID)

			w.edit(r, "mnist-worker-0", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
			u, err = w.server.Get(r, api.Key{Namespace: "lab", Name: "mnist-worker-0"})
			require.NoError(w, err)
			require.Empty(w, u.GetOwnerReferences(), "a Pod without the label is released")
		}
		require.Equal(w, 2, w.count(Pods))
		require.NotZero(w, w.logs.FilterMessageSnippet("failed").Len(), "its name is taken, and an Event reports that")
		require.NoError(w, w.server.Delete(Pods, api.Key{Namespace: "lab", Name: "mnist-worker-0"}))
		require.NoError(w, w.server.Delete(Services, api.Key{Namespace: "lab", Name: "mnist-worker-0"}))
		pass(time.Minute)
		require.Equal(w, 2, w.count(Pods))
		require.Equal(w, 2, w.count(Services))
	})
}

// TestRefusals has a server that refuses Pods: temporarily, permanently, and because the namespace terminates.
func TestRefusals(t *testing.T) {
	refuse := func(w *world, f faults.Fail) *testserver.Injection {
		return w.server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"create"}, Resource: "pods"}, Effect: f})
	}
	inWorld(t, func(w *world) {
		refused := refuse(w, faults.Fail{Code: 403, Message: "exceeded quota"})
		w.submit(2, asIs)
		pass(time.Second)
		require.Zero(w, w.reconciler.expected.Len(), "a failed creation is not expected")
		require.False(w, job.Finished(w.job()))
		refused.Remove()
		pass(time.Minute)
		require.Equal(w, 2, w.count(Pods))
	})
	inWorld(t, func(w *world) {
		refused := refuse(w, faults.Fail{Code: 422, Message: "the template is nonsense"})
		w.submit(2, asIs)
		pass(time.Hour)
		require.Equal(w, 1, refused.Seen(), "the first, and no other after it")
		j := w.job()
		last := j.Status.Conditions[len(j.Status.Conditions)-1]
		require.Equal(w, "Failed ReplicaRefused", last.Type+" "+last.Reason)
		require.Contains(w, last.Message, "the template is nonsense")
		require.Zero(w, w.count(Services), "and existing Pods are deleted")
		require.Zero(w, w.logs.Len())
	})
	inWorld(t, func(w *world) {
		terminating := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"being terminated",
			"details":{"causes":[{"reason":"NamespaceTerminating","message":"namespace lab is being terminated","field":"metadata.namespace"}]}}`
		refused := refuse(w, faults.Fail{Code: 403, Body: []byte(terminating), Header: map[string][]string{"Content-Type": {"application/json"}}})
		w.submit(2, asIs)
		pass(time.Hour)
		require.LessOrEqual(w, refused.Seen(), 3)
		require.Zero(w, w.logs.Len())
	})
}

// TestFailedDeletions expects a retry.
func TestFailedDeletions(t *testing.T) {
	inWorld(t, func(w *world) {
		w.submit(3, asIs)
		refused := w.server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"delete"}, Resource: "pods"}, Effect: faults.Fail{Code: 403, Message: "not now"},
		})
		w.edit(job.Resource, mnist.Name, func(u *unstructured.Unstructured) {
			require.NoError(w, unstructured.SetNestedField(u.Object, true, "spec", "suspend"))
		})
		pass(time.Second)
		require.Equal(w, 3, w.count(Pods))
		require.Zero(w, w.reconciler.expected.Len(), "a failed deletion is not awaited")
		refused.Remove()
		pass(time.Minute)
		require.Zero(w, w.count(Pods))
	})
}

// TestPanicsAreContained has a reconcile that panics once.
func TestPanicsAreContained(t *testing.T) {
	var panicked atomic.Bool
	panicOnce := func(r *reconciler) {
		r.pods.make = func(j *job.TrainingJob, p plan.Replica) *corev1.Pod {
			if p.Index == 1 && panicked.CompareAndSwap(false, true) {
				panic("unexpected case")
			}
			return plan.NewPod(j, p)
		}
	}
	inWorldWith(t, panicOnce, func(w *world) {
		w.submit(3, asIs)
		require.Equal(w, 1, w.logs.Len())
		require.Contains(w, w.logs.All()[0].ContextMap()["err"], "unexpected case")
		pass(time.Second)
		require.Equal(w, 3, w.count(Pods), "and what it did not create is not expected")
		require.Equal(w, 1, w.logs.Len())
	})
}

// TestAnotherVersionIsNotOverwritten changes a job between the read and the write of the controller.
func TestAnotherVersionIsNotOverwritten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.submit(1, asIs)
		held := w.hold(job.Resource, watch.Modified)
		w.touch()
		w.edit(Pods, "mnist-worker-0", phase(corev1.PodSucceeded))
		require.False(w, job.Finished(w.job()), "the job has changed since it was read")
		require.Zero(w, w.reconciler.counts.Succeeded.Load())
		held.Remove()
		synctest.Wait()
		require.True(w, job.Finished(w.job()))
		require.EqualValues(w, 1, w.reconciler.counts.Succeeded.Load())
		require.Zero(w, w.logs.Len())
	})
}
