package namespaces_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/namespaces"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	namespaced = api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	pods       = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

	shop = api.Key{Name: "shop"}
)

// inWorld runs test with a server, a controller and the namespace shop.
func inWorld(t *testing.T, o namespaces.Options, test func(*testkit.Kit)) {
	t.Helper()
	testkit.Run(t, testkit.Options{Server: testserver.Options{NamespaceLifecycle: true}}, func(k *testkit.Kit) {
		k.Start(namespaces.New(k.Client, o).Run)
		testkit.Create(k, namespaced, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		test(k)
	})
}

func create(k *testkit.Kit, r api.Resource, name string, finalizers ...string) {
	k.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace("shop")
	u.SetName(name)
	u.SetFinalizers(finalizers)
	testkit.Create(k, r, u)
}

func release(k *testkit.Kit, r api.Resource, name string) {
	k.Helper()
	must.Get(k.Server.Edit(r, api.Key{Namespace: "shop", Name: name}, func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }))(k)
}

// conditions returns the conditions that are true: the reasons and messages.
func conditions(k *testkit.Kit) map[corev1.NamespaceConditionType]string {
	k.Helper()
	out := map[corev1.NamespaceConditionType]string{}
	for _, c := range testkit.Get[*corev1.Namespace](k, namespaced, shop).Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			out[c.Type] = c.Reason + ": " + c.Message
		}
	}
	return out
}

func TestContentsGoFirst(t *testing.T) {
	inWorld(t, namespaces.Options{}, func(k *testkit.Kit) {
		create(k, configMaps, "a")
		create(k, pods, "p")
		testkit.Create(k, configMaps, map[string]any{"metadata": map[string]any{"name": "other", "namespace": "default"}})
		testkit.Delete(k, namespaced, shop)
		require.False(t, testkit.Has(k, namespaced, shop))
		require.Empty(t, testkit.List[*corev1.ConfigMap](k, configMaps, "shop"))
		require.Len(t, testkit.List[*corev1.ConfigMap](k, configMaps, ""), 1)
	})
}

func TestFinalizersInside(t *testing.T) {
	inWorld(t, namespaces.Options{}, func(k *testkit.Kit) {
		create(k, configMaps, "a", "leat.example/f", "leat.example/g")
		create(k, configMaps, "b", "leat.example/f")
		create(k, configMaps, "c")
		testkit.Delete(k, namespaced, shop)
		require.Equal(t, map[corev1.NamespaceConditionType]string{
			corev1.NamespaceContentRemaining: "SomeResourcesRemain: Some resources are remaining: configmaps. has 2 resource instances",
			corev1.NamespaceFinalizersRemaining: "SomeFinalizersRemain: Some content in the namespace has finalizers remaining: " +
				"leat.example/f in 2 resource instances, leat.example/g in 1 resource instances",
		}, conditions(k))
		since := testkit.Get[*corev1.Namespace](k, namespaced, shop).Status.Conditions[3].LastTransitionTime

		k.Pass(3 * time.Second)
		release(k, configMaps, "a")
		k.Pass(8 * time.Second)
		require.Equal(t, "SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances",
			conditions(k)[corev1.NamespaceContentRemaining])
		require.Equal(t, since, testkit.Get[*corev1.Namespace](k, namespaced, shop).Status.Conditions[3].LastTransitionTime,
			"the status of the condition has not changed")
		release(k, configMaps, "b")
		k.Pass(8 * time.Second)
		require.False(t, testkit.Has(k, namespaced, shop))
	})
}

// TestPodsGoFirst deletes a namespace with a pod on a node, which takes its time.
func TestPodsGoFirst(t *testing.T) {
	inWorld(t, namespaces.Options{}, func(k *testkit.Kit) {
		grace := int64(20)
		testkit.Create(k, pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"},
			Spec:       corev1.PodSpec{NodeName: "node-0", TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		})
		create(k, configMaps, "a")
		testkit.Delete(k, namespaced, shop)
		k.Pass(10 * time.Second)
		require.NotNil(t, testkit.Get[*corev1.Pod](k, pods, api.Key{Namespace: "shop", Name: "p"}).DeletionTimestamp)
		require.Len(t, testkit.List[*corev1.ConfigMap](k, configMaps, "shop"), 1, "other objects wait for the pods")
		require.Empty(t, conditions(k))
		require.Len(t, testkit.Get[*corev1.Namespace](k, namespaced, shop).Status.Conditions, 5)
		k.Pass(20 * time.Second)
		require.Equal(t, map[corev1.NamespaceConditionType]string{
			corev1.NamespaceDeletionContentFailure: "ContentDeletionFailed: Failed to delete all resource types, 1 remaining: " +
				"unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods",
		}, conditions(k), "after its grace period, the pod should be gone")
		require.NoError(t, k.Server.Delete(pods, api.Key{Namespace: "shop", Name: "p"}))
		k.Pass(5 * time.Minute)
		require.False(t, testkit.Has(k, namespaced, shop))
	})
}

func TestOtherFinalizersOfTheNamespace(t *testing.T) {
	inWorld(t, namespaces.Options{}, func(k *testkit.Kit) {
		client := apiclient.Subresource[*corev1.Namespace, *corev1.Namespace](k.Client, namespaced, shop, "finalize")
		ns := testkit.Get[*corev1.Namespace](k, namespaced, shop)
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, "leat.example/f")
		must.Get(client.Update(k.Context(), ns, metav1.UpdateOptions{}))(t)
		create(k, configMaps, "a")
		testkit.Delete(k, namespaced, shop)
		k.Pass(time.Minute)
		ns = testkit.Get[*corev1.Namespace](k, namespaced, shop)
		require.Equal(t, []corev1.FinalizerName{"leat.example/f"}, ns.Spec.Finalizers)
		require.Empty(t, testkit.List[*corev1.ConfigMap](k, configMaps, "shop"))
		ns.Spec.Finalizers = nil
		must.Get(client.Update(k.Context(), ns, metav1.UpdateOptions{}))(t)
		require.False(t, testkit.Has(k, namespaced, shop))
	})
}

func TestDelay(t *testing.T) {
	inWorld(t, namespaces.Options{Delay: 5 * time.Second}, func(k *testkit.Kit) {
		create(k, configMaps, "a")
		testkit.Delete(k, namespaced, shop)
		k.Pass(5*time.Second - 1)
		require.Len(t, testkit.List[*corev1.ConfigMap](k, configMaps, "shop"), 1)
		k.Pass(1)
		require.False(t, testkit.Has(k, namespaced, shop))
	})
}

func TestFailures(t *testing.T) {
	inWorld(t, namespaces.Options{}, func(k *testkit.Kit) {
		create(k, configMaps, "a")
		refused := k.Server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"deletecollection"}, Resource: "configmaps"}, Effect: faults.Fail{Code: http.StatusForbidden},
		})
		testkit.Delete(k, namespaced, shop)
		k.Pass(time.Second)
		got := conditions(k)
		require.Len(t, got, 1)
		require.Regexp(t, "^ContentDeletionFailed: Failed to delete all resource types, 1 remaining: [^:]*$", got[corev1.NamespaceDeletionContentFailure])
		refused.Remove()
		k.Pass(time.Minute)
		require.False(t, testkit.Has(k, namespaced, shop))
	})
}

// TestUndiscovered deletes a namespace while the server does not tell its resources.
func TestUndiscovered(t *testing.T) {
	inWorld(t, namespaces.Options{}, func(k *testkit.Kit) {
		create(k, configMaps, "a")
		hidden := k.Server.Inject(faults.Fault{
			Match: faults.Match{Func: func(r *http.Request) bool { return r.URL.Path == "/apis" }}, Effect: faults.Fail{Code: http.StatusServiceUnavailable},
		})
		testkit.Delete(k, namespaced, shop)
		k.Pass(time.Second)
		require.True(t, testkit.Has(k, namespaced, shop))
		require.Contains(t, conditions(k)[corev1.NamespaceDeletionDiscoveryFailure], "DiscoveryFailed: ")
		hidden.Remove()
		k.Pass(time.Minute)
		require.False(t, testkit.Has(k, namespaced, shop))
	})
}

// TestCatchUp starts the controller when the namespace is already being deleted.
func TestCatchUp(t *testing.T) {
	testkit.Run(t, testkit.Options{Server: testserver.Options{NamespaceLifecycle: true}}, func(k *testkit.Kit) {
		testkit.Create(k, namespaced, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		create(k, configMaps, "a")
		testkit.Delete(k, namespaced, shop)
		k.Start(namespaces.New(k.Client, namespaces.Options{}).Run)
		require.False(t, testkit.Has(k, namespaced, shop))
	})
}
