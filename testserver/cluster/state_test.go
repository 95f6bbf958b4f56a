package cluster_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster"
	"github.com/leatproject/leat/testserver/faults"
)

// TestDumpAndLoad moves typed objects to another cluster.
func TestDumpAndLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		first, second := cluster.Start(t, cluster.Options{}), cluster.Start(t, cluster.Options{})
		client := kubernetes.NewForConfigOrDie(first.Config())
		created, err := client.AppsV1().Deployments("default").Create(ctx, deployment("web"), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, second.Server.Load(first.Server.Dump()))
		client = kubernetes.NewForConfigOrDie(second.Config())
		loaded, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, created, loaded)
		loaded.Labels["more"] = "x"
		changed, err := client.AppsV1().Deployments("default").Update(ctx, loaded, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Equal(t, created.Generation, changed.Generation)

		require.NoError(t, second.Server.Load([]byte(`
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: default}
  spec: {ports: [{port: 80}]}
`)))
		service, err := client.CoreV1().Services("default").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, corev1.ServiceTypeClusterIP, service.Spec.Type, "objects without a version get defaults")
		require.ErrorContains(t, second.Server.Load([]byte("kind: List\nitems:\n- {apiVersion: v1, kind: Service, metadata: {name: x, namespace: default}, spec: {ports: [{port: 0}]}}")),
			`items[0], Service default/x: Service "x" is invalid: [spec.ports[0].port: Invalid value: 0`)
		_, err = client.CoreV1().Services("default").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err, "a wrong state changes nothing")
	})
}

// TestEventsAreDumpedOnce moves an Event, which two groups of the API show, by a dump and by a snapshot.
func TestEventsAreDumpedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := cluster.Start(t, cluster.Options{})
		client := kubernetes.NewForConfigOrDie(c.Config())
		events := func() (core, group int) {
			first, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			second, err := client.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			return len(first.Items), len(second.Items)
		}
		created, err := client.CoreV1().Events("default").Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "e"}, Reason: "Turned", Message: "m", Type: "Normal",
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "a", Namespace: "default"},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		dump, snapshot := c.Server.Dump(), c.Server.Snapshot()
		require.Equal(t, 1, strings.Count(string(dump), `"kind": "Event"`))
		for _, back := range []func(){
			func() { require.NoError(t, c.Server.Load(dump)) },
			func() { c.Server.Inject(faults.Fault{Effect: faults.Restore{To: snapshot}}) },
		} {
			require.NoError(t, client.CoreV1().Events("default").Delete(ctx, "e", metav1.DeleteOptions{}))
			core, group := events()
			require.Zero(t, core+group)
			back()
			core, group = events()
			require.Equal(t, []int{1, 1}, []int{core, group})
			got, err := client.CoreV1().Events("default").Get(ctx, "e", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, created, got)
		}
		require.ErrorContains(t, c.Server.Load([]byte("kind: List\nitems: [{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e, namespace: default, uid: x, resourceVersion: '7'}}]")),
			"items[0], Event default/e: an object with a resource version has the version in which it is stored, v1")
	})
}

// TestLoadChecksTypes shows the error for objects with a resource version that no server has stored.
func TestLoadChecksTypes(t *testing.T) {
	c, err := cluster.New(cluster.Options{})
	require.NoError(t, err)
	before := string(c.Server.Dump())
	meta := func(name string) string {
		return "{name: " + name + ", namespace: default, resourceVersion: '7', uid: " + name + "}"
	}
	service := func(name, more string) string {
		return "- {apiVersion: v1, kind: Service, metadata: " + meta(name) + ", spec: {clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9], ports: [{port: 80}]" + more + "}}\n"
	}
	for items, says := range map[string]string{
		"- {apiVersion: v1, kind: Pod, metadata: " + meta("a") + ", spec: 7}":                                                                  "items[0], Pod default/a: ",
		"- {apiVersion: v1, kind: Pod, metadata: " + meta("a") + ", spec: {containers: []}}":                                                   "items[0], Pod default/a: Pod \"a\" is invalid: spec.containers: Required value",
		"- {apiVersion: v1, kind: ConfigMap, metadata: " + meta("a") + ", dat: {}}":                                                            `items[0], ConfigMap default/a: unknown field "dat"`,
		"- {apiVersion: v1, kind: ConfigMap, metadata: " + meta("A_") + "}":                                                                    "items[0], ConfigMap default/A_: ",
		"- {apiVersion: apps/v1beta1, kind: Deployment, metadata: " + meta("a") + "}":                                                          "items[0], Deployment default/a: the server has no resource of this kind and version",
		"- {apiVersion: authentication.k8s.io/v1, kind: TokenReview, metadata: {resourceVersion: '7'}}":                                        "items[0], TokenReview : the server has no resource of this kind and version",
		"- {apiVersion: authentication.k8s.io/v1, kind: TokenReview, metadata: {name: a}}":                                                     "items[0], TokenReview a: the server has no resource of this kind and version",
		service("a", "") + service("b", ""):                                                                                                    "items[1], Service default/b: Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.9\"]: failed to allocate IP 10.0.0.9: provided IP is already allocated",
		"- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, resourceVersion: '7', uid: x}, spec: {}}": "items[0], CustomResourceDefinition a: ",
	} {
		err := c.Server.Load([]byte("kind: List\nitems:\n" + items))
		require.ErrorContains(t, err, says, items)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, before, string(c.Server.Dump()))
	}
	require.NoError(t, c.Server.Load([]byte("kind: List\nitems:\n"+service("a", ""))))
	service9 := api.Resource{Version: "v1", Kind: "Service", Plural: "services", Namespaced: true}
	_, err = c.Server.Create(service9, map[string]any{
		"metadata": map[string]any{"name": "b", "namespace": "default"},
		"spec":     map[string]any{"clusterIP": "10.0.0.9", "ports": []any{map[string]any{"port": 80}}},
	})
	require.ErrorContains(t, err, "provided IP is already allocated", "a loaded Service holds its address")
}

var definitionResource = api.Resource{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions",
}

// wheels is a definition with two versions, of which one stores objects.
func wheels(stored string, oldServed bool) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "wheels.leat.example"}}
	crd.Spec.Group, crd.Spec.Scope = "leat.example", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "wheels", Kind: "Wheel"}
	keep := true
	for _, name := range []string{"v1", "v2"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: name == "v2" || oldServed, Storage: name == stored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
		})
	}
	return crd
}

// TestDumpKeepsTheStoredVersion moves a custom resource that was stored in a version that is no longer the stored one,
// and no longer served.
func TestDumpKeepsTheStoredVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster.Start(t, cluster.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{wheels("v1", true)}})
		in := func(version string) api.Resource {
			return api.Resource{Group: "leat.example", Version: version, Kind: "Wheel", Plural: "wheels", Namespaced: true}
		}
		_, err := c.Server.Create(in("v1"), map[string]any{"metadata": map[string]any{"name": "old", "namespace": "default"}, "spec": "x"})
		require.NoError(t, err)
		next := wheels("v2", false)
		next.Status.StoredVersions = []string{"v1", "v2"}
		_, err = c.Server.Edit(definitionResource, api.Key{Name: next.Name}, func(u *unstructured.Unstructured) {
			spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&next.Spec)
			require.NoError(t, err)
			u.Object["spec"] = spec
		})
		require.NoError(t, err)
		_, err = c.Server.Create(in("v2"), map[string]any{"metadata": map[string]any{"name": "recent", "namespace": "default"}})
		require.NoError(t, err)
		synctest.Wait() // the APIService of v2 is there
		dump := string(c.Server.Dump())
		require.Equal(t, 1, strings.Count(dump, "\n      \"apiVersion\": \"leat.example/v1\""), dump)
		require.Equal(t, 1, strings.Count(dump, "\n      \"apiVersion\": \"leat.example/v2\""), dump)

		other := cluster.Start(t, cluster.Options{})
		require.NoError(t, other.Server.Load([]byte(dump)))
		synctest.Wait()
		items, _, _ := strings.Cut(dump, "\n  ],\n") // without the version of the list
		loaded, _, _ := strings.Cut(string(other.Server.Dump()), "\n  ],\n")
		require.Equal(t, items, loaded)
		old, err := other.Server.Get(in("v2"), api.Key{Namespace: "default", Name: "old"})
		require.NoError(t, err)
		require.Equal(t, "x", old.Object["spec"])
	})
}

// TestLoadKeepsTheFirstObjects loads a list that a person has written.
func TestLoadKeepsTheFirstObjects(t *testing.T) {
	c, err := cluster.New(cluster.Options{RBAC: true})
	require.NoError(t, err)
	require.NoError(t, c.Server.Load([]byte(`{"kind":"List","apiVersion":"v1","items":[
		{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"mine"}}]}`)))
	state := string(c.Server.Dump())
	for _, name := range []string{"mine", "system-cluster-critical", "cluster-admin", "kubernetes", "v1.apps", "kube-system"} {
		require.True(t, strings.Contains(state, `"name": "`+name+`"`), name)
	}
}

// TestLoadReplacesTheFirstObjects loads objects that a person has written, with the names of objects that every cluster
// has.
func TestLoadReplacesTheFirstObjects(t *testing.T) {
	inWorld(t, cluster.Options{Server: testserver.Options{StrictNamespaces: true}}, func(w world) {
		first, err := w.CoreV1().Services("default").Get(w.ctx, "kubernetes", metav1.GetOptions{})
		require.NoError(w, err)
		require.NoError(w, w.Server.Load([]byte(`
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: mine, namespace: default}}
- {apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {team: shop}}}
- apiVersion: v1
  kind: Service
  metadata: {name: kubernetes, namespace: default, labels: {team: shop}}
  spec: {clusterIP: `+first.Spec.ClusterIP+`, ports: [{port: 6443}]}
- apiVersion: scheduling.k8s.io/v1
  kind: PriorityClass
  metadata: {name: system-node-critical, labels: {team: shop}}
  value: 2000001000
`)))
		synctest.Wait()
		ns, err := w.CoreV1().Namespaces().Get(w.ctx, "default", metav1.GetOptions{})
		require.NoError(w, err)
		require.Equal(w, "shop", ns.Labels["team"])
		require.Equal(w, []corev1.FinalizerName{corev1.FinalizerKubernetes}, ns.Spec.Finalizers)
		require.Equal(w, corev1.NamespaceActive, ns.Status.Phase)
		service, err := w.CoreV1().Services("default").Get(w.ctx, "kubernetes", metav1.GetOptions{})
		require.NoError(w, err)
		require.Equal(w, first.Spec.ClusterIP, service.Spec.ClusterIP)
		require.EqualValues(w, 6443, service.Spec.Ports[0].Port)
		class, err := w.SchedulingV1().PriorityClasses().Get(w.ctx, "system-node-critical", metav1.GetOptions{})
		require.NoError(w, err)
		require.Equal(w, "shop", class.Labels["team"])
		for _, namespace := range []string{"default", "kube-system"} {
			_, err = w.CoreV1().ServiceAccounts(namespace).Get(w.ctx, "default", metav1.GetOptions{})
			require.NoError(w, err, "the service account of the replaced namespace is there")
		}
		_, err = w.CoreV1().ConfigMaps("default").Get(w.ctx, "mine", metav1.GetOptions{})
		require.NoError(w, err)
	})
}
