package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

var disruptionBudgets = api.Resource{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Plural: "poddisruptionbudgets", Namespaced: true}

// runPod creates a pod and writes the status of a running and ready pod, as a kubelet would.
func runPod(t *testing.T, client *apiclient.Client, namespace, name string) *corev1.Pod {
	t.Helper()
	all := apiclient.NewTyped[*corev1.Pod](client, pods, namespace)
	pod, err := all.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelSet{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "registry.example/app:1"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod = must.Get(all.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}))(t)
	return pod
}

// TestEviction evicts a pod that a disruption budget protects, and an unprotected one.
func TestEviction(t *testing.T) {
	client := newClient(t, adminConfig())
	namespace := newCollection(t, pods, podBody).namespace
	pod := runPod(t, client, namespace, "web")
	eviction := &policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name},
	}
	evict := func() error {
		_, err := apiclient.Subresource[*policyv1.Eviction, *metav1.Status](client, pods, api.KeyOf(pod), "eviction").
			Create(t.Context(), eviction, metav1.CreateOptions{})
		return err
	}

	all := intstr.FromInt32(1)
	budgets := apiclient.NewTyped[*policyv1.PodDisruptionBudget](client, disruptionBudgets, namespace)
	_, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: labelSet{"app": "web"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	err = evict()
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.True(t, apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), "%v", err)
	live := apiclient.NewPartial[*metav1.PartialObjectMetadata](client, pods, namespace)
	must.Get(live.Get(t.Context(), api.KeyOf(pod), metav1.GetOptions{}))(t)

	require.NoError(t, budgets.Delete(t.Context(), api.Key{Name: "web"}, metav1.DeleteOptions{}))
	require.NoError(t, eventually(t.Context(), evict), "the server knows for a moment of the budget that is gone")
	evicted, err := live.Get(t.Context(), api.KeyOf(pod), metav1.GetOptions{})
	if err == nil {
		require.NotNil(t, evicted.DeletionTimestamp)
	} else {
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	}
}

// TestBinding binds a pod to a node as a scheduler does.
func TestBinding(t *testing.T) {
	client := newClient(t, adminConfig())
	namespace := newCollection(t, pods, podBody).namespace
	all := apiclient.NewTyped[*corev1.Pod](client, pods, namespace)
	pod, err := all.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/app:1"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = apiclient.Subresource[*corev1.Binding, *metav1.Status](client, pods, api.KeyOf(pod), "binding").Create(t.Context(), &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "n2"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	bound := must.Get(all.Get(t.Context(), api.KeyOf(pod), metav1.GetOptions{}))(t)
	require.Equal(t, "n2", bound.Spec.NodeName)
}
