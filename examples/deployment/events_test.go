package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/examples/deployment/workload"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
)

// TestRecreateNoticesTheLastPod runs without a ReplicaSet controller, so only the deletion of the Pod shows that the
// old Pods are gone.
func TestRecreateNoticesTheLastPod(t *testing.T) {
	inWorld(t, testserver.Options{}, func(w *world) {
		w.start(partDeployment)
		w.deploy(func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType })
		set := testkit.List[*appsv1.ReplicaSet](w.Kit, workload.ReplicaSets, "")[0]
		pod := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: web.Namespace, Name: "last", Labels: set.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, workload.ReplicaSets.GroupVersionKind())},
			},
		}
		must.Get(w.Server.Create(workload.Pods, pod))(w)
		w.Idle() // no Pod is in the status yet, so the Deployment waits for none
		w.edit(image("web:2"))
		require.Equal(w, []string{"1: 0/0 web:1"}, w.sets())
		require.NoError(w, w.Server.Delete(workload.Pods, api.KeyOf(pod)))
		w.Idle()
		require.Equal(w, []string{"1: 0/0 web:1", "2: 0/4 web:2"}, w.sets())
	})
}

// TestTerminatingPodsAreNotAwaited scales down, and up again while the deleted Pods are still terminating. The
// expectation of a deletion is met when the deletionTimestamp is set.
func TestTerminatingPodsAreNotAwaited(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(asIs)
		w.Pass(time.Minute)
		w.edit(scale(2))
		require.Len(w, w.pods(), 4, "two of them are ending")
		w.edit(scale(4))
		require.Len(w, w.pods(), 6)
	})
}

func TestADeletedReplicaSetMakesNoPods(t *testing.T) {
	inWorld(t, testserver.Options{}, func(w *world) {
		w.start(partReplicaSet)
		w.deploy(asIs)
		app := map[string]string{"app": "web"}
		key := api.Key{Namespace: web.Namespace, Name: "goes"}
		must.Get(w.Server.Create(workload.ReplicaSets, &appsv1.ReplicaSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: []string{"example.org/wait"}},
			Spec: appsv1.ReplicaSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: app},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}},
			},
		}))(w)
		w.Idle()
		require.Len(w, w.pods(), 1, "the default of replicas is 1")
		require.NoError(w, w.Server.Delete(workload.ReplicaSets, key))
		w.Idle()
		require.NoError(w, w.Server.Delete(workload.Pods, api.KeyOf(w.pods()[0])))
		must.Get(w.Server.Edit(workload.ReplicaSets, key, func(u *unstructured.Unstructured) { u.SetAnnotations(app) }))(w)
		w.Pass(time.Minute)
		require.Empty(w, w.pods())
	})
}
