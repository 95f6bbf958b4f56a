package cluster_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/faults"
)

// TestControllersFollowAnotherState replaces the state five times in a row. Each time, every controller does its work
// within 100 ms.
func TestControllersFollowAnotherState(t *testing.T) {
	o := cluster.Options{
		EnableAdmissionPlugins: []string{"ServiceAccount"},
		Behaviour:              cluster.Behaviour{Workloads: true, Nodes: &cluster.Nodes{}},
	}
	for name, replace := range map[string]func(w world, before *testserver.Snapshot, dump []byte){
		"load an empty list": func(w world, _ *testserver.Snapshot, _ []byte) {
			require.NoError(w, w.Server.Load([]byte("kind: List")))
		},
		"load a dump": func(w world, _ *testserver.Snapshot, dump []byte) {
			require.NoError(w, w.Server.Load(dump))
		},
		"restore a snapshot": func(w world, before *testserver.Snapshot, _ []byte) {
			w.Server.Inject(faults.Fault{Effect: faults.Restore{To: before}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, o, func(w world) {
				before, dump := w.Server.Snapshot(), w.Server.Dump()
				for range 5 {
					replace(w, before, dump)
					synctest.Wait() // the service account is there, so the admission of pods does not wait for it
					w.behaves()
				}
			})
		})
	}
}

// TestControllersSurviveManyStates replaces the state while the controllers start.
func TestControllersSurviveManyStates(t *testing.T) {
	inWorld(t, cluster.Options{Behaviour: cluster.Behaviour{Workloads: true, Nodes: &cluster.Nodes{}}}, func(w world) {
		for i := range 20 {
			require.NoError(w, w.Server.Load([]byte("kind: List")))
			for range 2 * i {
				runtime.Gosched() // the controllers get a little further each time
			}
		}
		synctest.Wait()
		w.behaves()
	})
}

// TestACancelledCreationStoresNothing ends a creation whose admission waits for a service account. Otherwise, a
// controller of an earlier state could create a pod in a loaded one.
func TestACancelledCreationStoresNothing(t *testing.T) {
	o := cluster.Options{EnableAdmissionPlugins: []string{"ServiceAccount"}, Behaviour: cluster.Behaviour{NoServiceAccounts: true}}
	inWorld(t, o, func(w world) {
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Millisecond)
		defer cancel()
		_, err := w.CoreV1().Pods("default").Create(ctx, pod("late", "web:1"), metav1.CreateOptions{})
		require.ErrorIs(w, err, context.DeadlineExceeded)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		must.Get(w.CoreV1().ServiceAccounts("default").Create(w.ctx, account, metav1.CreateOptions{}))(w)
		w.pass(10 * time.Second)
		_, err = w.CoreV1().Pods("default").Get(w.ctx, "late", metav1.GetOptions{})
		require.True(w, apierrors.IsNotFound(err), "%v", err)
		must.Get(w.CoreV1().Pods("default").Create(w.ctx, pod("late", "web:1"), metav1.CreateOptions{}))(w)
	})
}

// behaves requires that each controller does its work within 100 ms.
func (w world) behaves() {
	w.Helper()
	began := time.Now()
	maps, pods := w.CoreV1().ConfigMaps("default"), w.CoreV1().Pods("default")
	_, err := maps.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "orphan", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "none"}},
	}}, metav1.CreateOptions{})
	require.NoError(w, err)
	must.Get(w.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))(w)
	require.NoError(w, w.CoreV1().Namespaces().Delete(w.ctx, "shop", metav1.DeleteOptions{}))
	d := deployment("web")
	must.Get(w.AppsV1().Deployments("default").Create(w.ctx, d, metav1.CreateOptions{}))(w)
	most := intstr.FromInt32(1)
	must.Get(w.PolicyV1().PodDisruptionBudgets("default").Create(w.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: d.Spec.Selector},
	}, metav1.CreateOptions{}))(w)
	must.Get(pods.Create(w.ctx, pod("single", "web:1"), metav1.CreateOptions{}))(w)

	require.LessOrEqual(w, time.Since(began), 100*time.Millisecond)
	w.pass(100*time.Millisecond - time.Since(began))
	must.Get(w.CoreV1().ServiceAccounts("default").Get(w.ctx, "default", metav1.GetOptions{}))(w)
	_, err = maps.Get(w.ctx, "orphan", metav1.GetOptions{})
	require.True(w, apierrors.IsNotFound(err), "the garbage collector: %v", err)
	_, err = w.CoreV1().Namespaces().Get(w.ctx, "shop", metav1.GetOptions{})
	require.True(w, apierrors.IsNotFound(err), "the deletion of namespaces: %v", err)
	require.Equal(w, corev1.PodRunning, w.pod("single").Status.Phase, "the scheduler and the kubelet")
	d = must.Get(w.AppsV1().Deployments("default").Get(w.ctx, "web", metav1.GetOptions{}))(w)
	require.EqualValues(w, 1, d.Status.ReadyReplicas, "the controllers of workloads")
	b := must.Get(w.PolicyV1().PodDisruptionBudgets("default").Get(w.ctx, "web", metav1.GetOptions{}))(w)
	require.Positive(w, b.Status.ExpectedPods, "the controller of disruption budgets")
}
