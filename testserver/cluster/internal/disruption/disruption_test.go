package disruption_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver/cluster/internal/disruption"
)

var (
	pods    = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	sets    = api.Resource{Group: "apps", Version: "v1", Kind: "ReplicaSet", Plural: "replicasets", Namespaced: true}
	deploys = api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
	budgets = api.Resource{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Plural: "poddisruptionbudgets", Namespaced: true}
	mills   = api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}

	app = map[string]string{"app": "web"}
)

func inWorld(t *testing.T, test func(*testkit.Kit)) {
	t.Helper()
	testkit.Run(t, testkit.Options{Resources: []api.Resource{budgets, mills}}, func(k *testkit.Kit) {
		k.Start(disruption.New(k.Client, disruption.Options{}).Run)
		test(k)
	})
}

func budget(k *testkit.Kit, change func(*policyv1.PodDisruptionBudgetSpec)) {
	k.Helper()
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: app}},
	}
	change(&b.Spec)
	testkit.Create(k, budgets, b)
}

func atLeast(v intstr.IntOrString) func(*policyv1.PodDisruptionBudgetSpec) {
	return func(s *policyv1.PodDisruptionBudgetSpec) { s.MinAvailable = &v }
}

func atMost(v intstr.IntOrString) func(*policyv1.PodDisruptionBudgetSpec) {
	return func(s *policyv1.PodDisruptionBudgetSpec) { s.MaxUnavailable = &v }
}

// run creates ready pods with an owner.
func run(k *testkit.Kit, n int, owners ...metav1.OwnerReference) {
	k.Helper()
	for i := range n {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i), Labels: app, OwnerReferences: owners}}
		p.Spec.NodeName = "node-0"
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		testkit.Create(k, pods, p)
	}
}

// numbers returns the status of the budget: allowed, healthy, desired and expected.
func numbers(k *testkit.Kit) [4]int32 {
	k.Helper()
	s := testkit.Get[*policyv1.PodDisruptionBudget](k, budgets, api.Key{Namespace: "default", Name: "b"}).Status
	return [4]int32{s.DisruptionsAllowed, s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods}
}

func evict(k *testkit.Kit, name string) error {
	endpoint := apiclient.Subresource[*policyv1.Eviction, *metav1.Status](k.Client, pods, api.Key{Namespace: "default", Name: name}, "eviction")
	_, err := endpoint.Create(k.Context(), &policyv1.Eviction{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
	}, metav1.CreateOptions{})
	k.Idle()
	return err
}

func TestNumber(t *testing.T) {
	inWorld(t, func(k *testkit.Kit) {
		budget(k, atLeast(intstr.FromInt32(2)))
		require.Equal(t, [4]int32{0, 0, 2, 0}, numbers(k))
		run(k, 3)
		require.Equal(t, [4]int32{1, 3, 2, 3}, numbers(k))
		require.NoError(t, evict(k, "p0"))
		require.Equal(t, [4]int32{0, 2, 2, 3}, numbers(k))
		err := evict(k, "p1")
		require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		require.NoError(t, k.Server.Delete(pods, api.Key{Namespace: "default", Name: "p0"}))
		run(k, 1)
		require.Equal(t, [4]int32{1, 3, 2, 3}, numbers(k))
		require.NoError(t, evict(k, "p1"))
	})
}

func owner(k *testkit.Kit, r api.Resource, name string, replicas int32, owners ...metav1.OwnerReference) metav1.OwnerReference {
	k.Helper()
	yes := true
	u := must.Get(k.Server.Create(r, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: owners}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas},
	}))(k)
	return metav1.OwnerReference{APIVersion: r.GroupVersion().String(), Kind: r.Kind, Name: name, UID: u.GetUID(), Controller: &yes}
}

func TestPercentages(t *testing.T) {
	inWorld(t, func(k *testkit.Kit) {
		deployment := owner(k, deploys, "web", 5)
		run(k, 4, owner(k, sets, "web-1", 3, deployment))
		budget(k, atMost(intstr.FromString("30%")))
		require.Equal(t, [4]int32{1, 4, 3, 5}, numbers(k), "5 replicas of the Deployment, of which 2 may be missing")
	})
	inWorld(t, func(k *testkit.Kit) {
		run(k, 4, owner(k, sets, "web-1", 4))
		budget(k, atLeast(intstr.FromString("51%")))
		require.Equal(t, [4]int32{1, 4, 3, 4}, numbers(k))
	})
}

func TestOwnersWithoutScale(t *testing.T) {
	inWorld(t, func(k *testkit.Kit) {
		run(k, 2, owner(k, mills, "m", 2))
		budget(k, atMost(intstr.FromInt32(1)))
		require.Equal(t, [4]int32{}, numbers(k))
		err := evict(k, "p0")
		require.ErrorContains(t, err, "disruption budget")
		status := testkit.Get[*policyv1.PodDisruptionBudget](k, budgets, api.Key{Namespace: "default", Name: "b"}).Status
		require.Equal(t, "SyncFailed mills.leat.example does not implement the scale subresource", status.Conditions[0].Reason+" "+status.Conditions[0].Message)
	})
}

// TestForgottenEviction has an eviction in the status whose pod was never deleted.
func TestForgottenEviction(t *testing.T) {
	inWorld(t, func(k *testkit.Kit) {
		run(k, 3)
		budget(k, atLeast(intstr.FromInt32(1)))
		testkit.Edit(k, budgets, api.Key{Namespace: "default", Name: "b"}, func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptedPods = map[string]metav1.Time{"p0": metav1.Now(), "gone": metav1.Now()}
		})
		require.Equal(t, [4]int32{1, 2, 1, 3}, numbers(k))
		k.Pass(2*time.Minute - 1)
		require.Equal(t, [4]int32{1, 2, 1, 3}, numbers(k))
		k.Pass(1)
		require.Equal(t, [4]int32{2, 3, 1, 3}, numbers(k))
	})
}

func TestPodsAreFollowedFromTheFirstBudgetOn(t *testing.T) {
	inWorld(t, func(k *testkit.Kit) {
		run(k, 2)
		k.Pass(time.Minute)
		require.Zero(t, k.Requests("list", "pods")+k.Requests("watch", "pods"))
		budget(k, atLeast(intstr.FromInt32(1)))
		require.Equal(t, [4]int32{1, 2, 1, 2}, numbers(k))
		require.Equal(t, 1, k.Requests("watch", "pods"))
		require.NoError(t, k.Server.Delete(pods, api.Key{Namespace: "default", Name: "p0"}))
		k.Idle()
		require.Equal(t, [4]int32{0, 1, 1, 1}, numbers(k))
		other := must.Get(k.Server.Edit(pods, api.Key{Namespace: "default", Name: "p1"}, func(u *unstructured.Unstructured) { u.SetLabels(nil) }))(t)
		require.Empty(t, other.GetLabels())
		k.Idle()
		require.Equal(t, [4]int32{0, 0, 1, 0}, numbers(k), "a pod that no longer matches")
	})
}
