package collect_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testkit"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/cluster/internal/collect"
)

var (
	configMaps  = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	secrets     = api.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}
	events      = api.Resource{Version: "v1", Kind: "Event", Plural: "events", Namespaced: true}
	nodes       = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
	definitions = api.Resource{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions"}
	mills       = api.Resource{Group: "leat.example", Version: "v1", Kind: "Mill", Plural: "mills", Namespaced: true}
)

// world is a server with a collector.
type world struct {
	*testkit.Kit
	uids map[string]*unstructured.Unstructured
}

func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		k.Start(collect.New(k.Client, collect.Options{}).Run)
		test(&world{Kit: k, uids: map[string]*unstructured.Unstructured{}})
		require.Empty(k, k.Errors())
	})
}

// ref refers to an object that the test has created. Blocking references block a deletion in the foreground.
func (w *world) ref(name string, blocking bool) metav1.OwnerReference {
	w.Helper()
	o := w.uids[name]
	require.NotNil(w, o, name)
	r := metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID()}
	if blocking {
		r.BlockOwnerDeletion = &blocking
	}
	return r
}

func (w *world) make(r api.Resource, name string, owners ...metav1.OwnerReference) {
	w.Helper()
	w.makeIn("default", r, name, owners...)
}

func (w *world) makeIn(namespace string, r api.Resource, name string, owners ...metav1.OwnerReference) {
	w.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetName(name)
	if r.Namespaced {
		u.SetNamespace(namespace)
	}
	u.SetOwnerReferences(owners)
	u = must.Get(w.Server.Create(r, u))(w)
	w.uids[name] = u
	w.Idle()
}

// delete deletes an object over HTTP, because the methods of the server do not know policies of deletions.
func (w *world) delete(r api.Resource, name string, policy metav1.DeletionPropagation) {
	w.Helper()
	client := apiclient.NewPartial[*unstructured.Unstructured](w.Client, r, "")
	require.NoError(w, client.Delete(w.Context(), w.key(r, name), metav1.DeleteOptions{PropagationPolicy: &policy}))
	w.Idle()
}

func (w *world) key(r api.Resource, name string) api.Key {
	if r.Namespaced {
		return api.Key{Namespace: "default", Name: name}
	}
	return api.Key{Name: name}
}

// names returns the objects of a resource, each with the names of its owners: "b<a".
func (w *world) names(r api.Resource) []string {
	w.Helper()
	out := []string{}
	for _, u := range testkit.List[*unstructured.Unstructured](w.Kit, r, "") {
		line := u.GetName()
		for _, o := range u.GetOwnerReferences() {
			line += "<" + o.Name
		}
		if u.GetDeletionTimestamp() != nil {
			line += " deleting"
		}
		out = append(out, line)
	}
	return out
}

func (w *world) finalizers(r api.Resource, name string, finalizers ...string) {
	w.Helper()
	must.Get(w.Server.Edit(r, w.key(r, name), func(u *unstructured.Unstructured) { u.SetFinalizers(finalizers) }))(w)
	w.Idle()
}

func TestBackground(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(secrets, "b", w.ref("a", true))
		w.make(configMaps, "c", w.ref("b", false))
		w.make(configMaps, "other")
		w.delete(configMaps, "a", metav1.DeletePropagationBackground)
		require.Equal(t, []string{"other"}, w.names(configMaps))
		require.Empty(t, w.names(secrets))
	})
}

func TestSecondOwner(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(configMaps, "b")
		w.make(secrets, "c", w.ref("a", false), w.ref("b", false))
		w.delete(configMaps, "a", metav1.DeletePropagationBackground)
		require.Equal(t, []string{"c<b"}, w.names(secrets), "the reference to the absent owner is removed")
		w.delete(configMaps, "b", metav1.DeletePropagationBackground)
		require.Empty(t, w.names(secrets))
	})
}

func TestAbsentOwners(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		wrong := w.ref("a", false)
		wrong.UID = "another"
		w.make(secrets, "never", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"})
		w.make(secrets, "former", wrong)
		require.Empty(t, w.names(secrets), "an owner that does not exist is noticed when the object appears")
		w.make(secrets, "both", wrong, w.ref("a", false))
		require.Equal(t, []string{"both<a"}, w.names(secrets))
	})
}

// TestOwnerElsewhere has an owner in another namespace, which is as good as none.
func TestOwnerElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		w.makeIn("shop", configMaps, "a")
		w.make(secrets, "b", w.ref("a", false))
		require.Empty(t, w.names(secrets))
		w.makeIn("shop", secrets, "c", w.ref("a", false))
		require.Equal(t, []string{"c<a"}, w.names(secrets))
		require.Equal(t, []string{`OwnerRefInvalidNamespace of b: ownerRef [v1/ConfigMap, namespace: default, name: a, uid: ` +
			string(w.uids["a"].GetUID()) + `] does not exist in namespace "default"`}, w.events())
	})
}

// TestOwnerElsewhereNeedsNoCache has an owner in another namespace while the watch of its kind is stuck.
func TestOwnerElsewhereNeedsNoCache(t *testing.T) {
	inWorld(t, func(w *world) {
		stalled := w.Server.Inject(stall("configmaps"))
		defer stalled.Remove()
		w.makeIn("shop", configMaps, "a")
		w.make(secrets, "b", w.ref("a", false))
		require.Empty(t, w.names(secrets))
		require.Len(t, w.events(), 1)
	})
}

// events returns the reasons and messages of all Events.
func (w *world) events() []string {
	var out []string
	for _, e := range testkit.List[*unstructured.Unstructured](w.Kit, events, "") {
		about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
		out = append(out, fmt.Sprintf("%s of %s: %s", e.Object["reason"], about, e.Object["message"]))
	}
	return out
}

// TestOtherVersion has references with another version than that of the cache.
func TestOtherVersion(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		k.Start(collect.New(k.Client, collect.Options{}).Run)
		w := &world{Kit: k, uids: map[string]*unstructured.Unstructured{}}
		w.make(configMaps, "a")
		wrong := w.ref("a", false)
		wrong.APIVersion = "v7"
		w.make(secrets, "b", wrong)
		w.delete(configMaps, "a", metav1.DeletePropagationBackground)
		require.Equal(t, []string{"b<a"}, w.names(secrets), "the server does not know whether an owner of version v7 exists")
	})
}

func TestOwnersWithoutNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(nodes, "n")
		w.make(configMaps, "a")
		w.make(secrets, "b", w.ref("n", false))
		w.make(nodes, "wrong", w.ref("a", false))
		w.delete(configMaps, "a", metav1.DeletePropagationBackground)
		require.Equal(t, []string{"n", "wrong<a"}, w.names(nodes), "a node cannot have an owner in a namespace, so it stays")
		require.Len(t, w.events(), 1)
		w.delete(nodes, "n", metav1.DeletePropagationBackground)
		require.Empty(t, w.names(secrets))
	})
}

func TestUnknownKinds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(secrets, "a", metav1.OwnerReference{APIVersion: "leat.example/v1", Kind: "Unknown", Name: "x", UID: "x"})
		w.Pass(time.Hour)
		require.Equal(t, []string{"a<x"}, w.names(secrets))
	})
}

func TestForeground(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(secrets, "blocks", w.ref("a", true))
		w.make(secrets, "free", w.ref("a", false))
		w.finalizers(secrets, "blocks", "leat.example/f")
		w.finalizers(secrets, "free", "leat.example/f")
		w.delete(configMaps, "a", metav1.DeletePropagationForeground)
		require.Equal(t, []string{"a deleting"}, w.names(configMaps), "the owner waits")
		require.Equal(t, []string{"blocks<a deleting", "free<a deleting"}, w.names(secrets))
		w.finalizers(secrets, "blocks")
		require.Empty(t, w.names(configMaps), "the owner waits only for those that block")
		require.Equal(t, []string{"free<a deleting"}, w.names(secrets))
	})
}

func TestForegroundChain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(configMaps, "b", w.ref("a", true))
		w.make(secrets, "c", w.ref("b", true))
		w.finalizers(secrets, "c", "leat.example/f")
		w.delete(configMaps, "a", metav1.DeletePropagationForeground)
		require.Equal(t, []string{"a deleting", "b<a deleting"}, w.names(configMaps), "the middle waits too")
		w.finalizers(secrets, "c")
		require.Empty(t, w.names(configMaps))
		require.Empty(t, w.names(secrets))
	})
}

// TestForegroundWithSecondOwner deletes an owner of an object that has another one.
func TestForegroundWithSecondOwner(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(configMaps, "b")
		w.make(secrets, "c", w.ref("a", true), w.ref("b", true))
		w.delete(configMaps, "a", metav1.DeletePropagationForeground)
		require.Equal(t, []string{"b"}, w.names(configMaps))
		require.Equal(t, []string{"c<b"}, w.names(secrets))
	})
}

// TestReleasedDependent removes the reference that an owner waits for.
func TestReleasedDependent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(secrets, "b", w.ref("a", true))
		w.finalizers(secrets, "b", "leat.example/f")
		w.delete(configMaps, "a", metav1.DeletePropagationForeground)
		must.Get(w.Server.Edit(secrets, w.key(secrets, "b"), func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }))(t)
		w.Idle()
		require.Empty(t, w.names(configMaps))
		require.Equal(t, []string{"b deleting"}, w.names(secrets))
	})
}

func TestForegroundCycle(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(configMaps, "b", w.ref("a", true))
		must.Get(w.Server.Edit(configMaps, w.key(configMaps, "a"), func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{w.ref("b", true)})
		}))(t)
		w.Idle()
		w.delete(configMaps, "a", metav1.DeletePropagationForeground)
		require.Empty(t, w.names(configMaps))
	})
}

func TestOrphan(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(configMaps, "b")
		w.make(secrets, "c", w.ref("a", true), w.ref("b", true))
		w.make(secrets, "d", w.ref("a", true))
		w.delete(configMaps, "a", metav1.DeletePropagationOrphan)
		require.Equal(t, []string{"b"}, w.names(configMaps))
		require.Equal(t, []string{"c<b", "d"}, w.names(secrets))
	})
}

// TestOrphanNeedsNoCache deletes an owner while the watch of its dependents is stuck: they are still released.
func TestOrphanNeedsNoCache(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		stalled := w.Server.Inject(stall("secrets"))
		w.make(secrets, "b", w.ref("a", true))
		w.delete(configMaps, "a", metav1.DeletePropagationOrphan)
		require.Empty(t, w.names(configMaps))
		stalled.Remove()
		w.Idle()
		require.Equal(t, []string{"b"}, w.names(secrets))
	})
}

// TestLateDependent creates a dependent while its owner waits for another one.
func TestLateDependent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(secrets, "held", w.ref("a", true))
		w.finalizers(secrets, "held", "example.com/hold")
		w.delete(configMaps, "a", metav1.DeletePropagationForeground)
		w.make(secrets, "late", w.ref("a", true))
		require.Equal(t, []string{"held<a deleting", "late<a"}, w.names(secrets), "the owner does not change, so the collector does not look")
		w.finalizers(secrets, "held")
		require.Empty(t, w.names(secrets))
		require.Empty(t, w.names(configMaps))
	})
}

// TestForegroundNeedsNoCache does the same with a dependent that blocks.
func TestForegroundNeedsNoCache(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		stalled := w.Server.Inject(stall("secrets"))
		w.make(secrets, "b", w.ref("a", true))
		w.delete(configMaps, "a", metav1.DeletePropagationForeground)
		require.Equal(t, []string{"a deleting"}, w.names(configMaps))
		stalled.Remove()
		w.Pass(time.Second) // until the collector looks at the owner again
		require.Empty(t, w.names(configMaps))
		require.Empty(t, w.names(secrets))
	})
}

func TestCustomResources(t *testing.T) {
	inWorld(t, func(w *world) {
		testkit.Create(w.Kit, definitions, definition())
		w.make(mills, "m")
		w.make(secrets, "a", w.ref("m", true))
		w.make(mills, "n", w.ref("a", true))
		w.delete(mills, "m", metav1.DeletePropagationForeground)
		require.Empty(t, w.names(mills))
		require.Empty(t, w.names(secrets))

		w.make(mills, "m")
		w.make(secrets, "a", w.ref("m", true))
		require.NoError(t, w.Server.Delete(definitions, api.Key{Name: "mills.leat.example"}))
		w.Pass(time.Minute)
		require.Empty(t, w.names(secrets), "the definition took its objects along")
	})
}

// TestRegisteredResources registers a resource without a definition, so that only the next look finds it.
func TestRegisteredResources(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Server.Register(mills)
		w.make(mills, "m")
		w.make(secrets, "a", w.ref("m", false))
		w.Pass(time.Second)
		require.NoError(t, w.Server.Delete(mills, w.key(mills, "m")))
		w.Pass(30 * time.Second)
		require.Empty(t, w.names(secrets))
	})
}

// TestCatchUp starts a collector on a server with objects whose owners are already gone.
func TestCatchUp(t *testing.T) {
	testkit.Run(t, testkit.Options{Server: testserver.Options{}}, func(k *testkit.Kit) {
		w := &world{Kit: k, uids: map[string]*unstructured.Unstructured{}}
		w.make(configMaps, "a")
		w.make(configMaps, "b")
		w.make(configMaps, "c")
		for i := range 3 {
			w.make(secrets, fmt.Sprint("of-a-", i), w.ref("a", true))
		}
		w.make(secrets, "of-b", w.ref("b", true))
		w.make(secrets, "of-c", w.ref("c", true))
		w.delete(configMaps, "a", metav1.DeletePropagationBackground)
		w.delete(configMaps, "b", metav1.DeletePropagationForeground)
		require.Equal(t, []string{"b deleting", "c"}, w.names(configMaps))
		require.Len(t, w.names(secrets), 5)
		k.Start(collect.New(k.Client, collect.Options{}).Run)
		require.Equal(t, []string{"c"}, w.names(configMaps))
		require.Equal(t, []string{"of-c<c"}, w.names(secrets))
	})
}

// TestIdle requires that the collector sends nothing but its look at the resources while nothing changes.
func TestIdle(t *testing.T) {
	inWorld(t, func(w *world) {
		w.make(configMaps, "a")
		w.make(secrets, "b", w.ref("a", true))
		w.Server.ForgetRequests()
		w.Pass(4 * time.Minute)
		for _, r := range w.Server.Requests() {
			require.Empty(t, r.Resource, "%s %s", r.Method, r.Path)
		}
	})
}

func TestNoServer(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		i := k.Server.Inject(down)
		p := k.Start(collect.New(k.Client, collect.Options{}).Run)
		require.ErrorContains(t, p.Wait(), "collect: ")
		i.Remove()
	})
}

func definition() (d map[string]any) {
	err := json.Unmarshal([]byte(`{"metadata":{"name":"mills.leat.example"},"spec":{
		"group":"leat.example","scope":"Namespaced","names":{"kind":"Mill","plural":"mills"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`), &d)
	if err != nil {
		panic(err)
	}
	return d
}
