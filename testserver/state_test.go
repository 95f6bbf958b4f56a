package testserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

var wheels = api.Resource{Group: "leat.example", Version: "v1", Kind: "Wheel", Plural: "wheels", Namespaced: true}

const wheelsPath = "/apis/leat.example/v1/namespaces/default/wheels"

// withoutVersion removes the version of the list, which Load makes newer.
func withoutVersion(t *testing.T, dump []byte) string {
	t.Helper()
	items, _, ok := strings.Cut(string(dump), "\n  ],\n") // keys are sorted: items come before metadata
	require.True(t, ok, "%s", dump)
	return items
}

// TestDumpAndLoad moves a state with custom resources and an object that is being deleted to another server.
func TestDumpAndLoad(t *testing.T) {
	var dump []byte
	var version, uid string
	inBubble(t, testserver.Options{}, func(b *bench) {
		must.Get(b.Create(crds, crd(doc{"name": "v1", "served": true, "storage": true})))(b)
		b.ok(http.MethodPost, wheelsPath, custom("Wheel", "m"))
		b.fill(3)
		held := b.ok(http.MethodPost, mapsPath, doc{"metadata": doc{"name": "held", "finalizers": []string{"leat.example/x"}}})
		require.NoError(b, b.Delete(configMaps, api.Key{Namespace: "default", Name: "held"}))
		uid, version = string(held.GetUID()), b.ResourceVersion()
		dump = b.Dump()
		require.Equal(b, dump, b.Dump(), "equal states give equal bytes")
		var list metav1.List
		require.NoError(b, json.Unmarshal(dump, &list))
		require.Equal(b, version, list.ResourceVersion)
	})
	asYAML := must.Get(yaml.JSONToYAML(dump))(t)
	for name, text := range map[string][]byte{"JSON": dump, "YAML": asYAML} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, testserver.Options{StrictNamespaces: true}, func(b *bench) {
				b.ok(http.MethodPost, mapsPath, doc{"metadata": doc{"name": "earlier"}})
				require.NoError(b, b.Load(text))
				require.Equal(b, withoutVersion(t, dump), withoutVersion(t, b.Dump()))
				require.Greater(b, b.ResourceVersion(), version)
				b.refused(410, http.MethodGet, podsPath+"?resourceVersionMatch=Exact&limit=1&resourceVersion="+version, nil)
				b.refused(404, http.MethodGet, mapsPath+"/earlier", nil)

				held := b.ok(http.MethodGet, mapsPath+"/held", nil)
				require.Equal(b, uid, string(held.GetUID()))
				require.NotNil(b, held.GetDeletionTimestamp())
				held.SetFinalizers(nil)
				b.ok(http.MethodPut, mapsPath+"/held", held)
				b.refused(404, http.MethodGet, mapsPath+"/held", nil)

				seen := map[string]bool{}
				b.ok(http.MethodPost, wheelsPath, custom("Wheel", "n"))
				for _, r := range []api.Resource{pods, wheels, crds} {
					all := must.Get(b.List(r, ""))(b)
					for _, u := range all {
						require.False(b, seen[string(u.GetUID())], "a UID of the loaded state is not generated again")
						seen[string(u.GetUID())] = true
					}
				}
				require.NotEmpty(b, seen)
			})
		})
	}
}

// TestLoadIsLikeARestore loads while a client watches.
func TestLoadIsLikeARestore(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.fill(1)
		dump := b.Dump()
		_, err := b.Create(pods, pod("later"))
		require.NoError(b, err)
		old := b.ResourceVersion()
		w := b.watch(podsPath, "resourceVersion="+old)
		require.NoError(b, b.Load(dump))
		_, err = w.next()
		require.Error(b, err, "the watch is reset")
		require.Equal(b, []string{"a"}, b.list(podsPath).names())
		w = b.watch(podsPath, "resourceVersion="+old)
		w.expect("ERROR 410 Expired")
	})
}

// TestLoadWhatAPersonWrote creates the objects that have no resource version.
func TestLoadWhatAPersonWrote(t *testing.T) {
	inBubble(t, testserver.Options{StrictNamespaces: true}, func(b *bench) {
		require.NoError(b, b.Load([]byte(`
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: flags, namespace: shop}
  data: {colour: red}
`)))
		flags := b.ok(http.MethodGet, "/api/v1/namespaces/shop/configmaps/flags", nil)
		require.Equal(b, doc{"colour": "red"}, flags.Object["data"])
		require.NotEmpty(b, flags.GetUID())
		require.Equal(b, []string{"default", "kube-node-lease", "kube-public", "kube-system", "shop"}, b.list("/api/v1/namespaces").names())
	})
}

// TestWrongStates shows the error for each kind of mistake. Each leaves the state as it was.
func TestWrongStates(t *testing.T) {
	item := func(text string) string { return "kind: List\nitems:\n- " + text }
	inBubble(t, testserver.Options{StrictNamespaces: true}, func(b *bench) {
		b.fill(1)
		before := string(b.Dump())
		for text, says := range map[string]string{
			"":                       `expected an object, got "null"`,
			"{":                      "did not find expected node content",
			"a: b: c":                "mapping values are not allowed",
			"kind: PodList":          `the state is a List, and not a "PodList"`,
			"kind: List\nkind: List": `key "kind" already set`,
			"kind: List\nitems: 7":   "items is not a list",
			item("7"):                "items[0] is not an object",
			"{kind: List, metadata: {resourceVersion: x}}":                                                                                                                             `metadata.resourceVersion "x" is not a number`,
			item("{apiVersion: v2, kind: Pod, metadata: {name: a}}"):                                                                                                                   "items[0], Pod a: the server has no resource of this kind and version",
			item("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}}"):                                                                                                  `items[0], Pod shop/a: namespaces "shop" not found`,
			item("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, resourceVersion: x}}"):                                                                           `metadata.resourceVersion "x" is not a number above 0`,
			item("{apiVersion: v1, kind: Pod, metadata: {name: a, resourceVersion: '7', uid: x}}"):                                                                                     "metadata.namespace is missing",
			item("{apiVersion: v1, kind: Pod, metadata: {namespace: default, resourceVersion: '7', uid: x}}"):                                                                          "metadata.name is missing",
			item("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, resourceVersion: '7'}}"):                                                                         "metadata.uid is missing",
			item("{apiVersion: v1, kind: Pod, metadata: {name: 7, namespace: default, resourceVersion: '7', uid: x}}"):                                                                 "metadata.name",
			item("{apiVersion: v1, kind: Node, metadata: {name: a, resourceVersion: '7', uid: x}}\n- {apiVersion: v1, kind: Node, metadata: {name: a, resourceVersion: '8', uid: z}}"): "items[1], Node a: it is a second object of this name",
			item("{apiVersion: v1, kind: Node, metadata: {name: a, resourceVersion: '7', uid: x}}\n- {apiVersion: v1, kind: Node, metadata: {name: b, resourceVersion: '8', uid: x}}"): "items[1], Node b: another object has the same metadata.uid, x",
			item("{apiVersion: leat.example/v1, kind: Wheel, metadata: {name: a, namespace: default, resourceVersion: '7', uid: x}}"):                                                  "items[0], Wheel default/a: the server has no resource of this kind and version",
		} {
			err := b.Load([]byte(text))
			require.ErrorContains(b, err, says, text)
			require.True(b, strings.HasPrefix(err.Error(), "testserver: load: "), err)
			require.Equal(b, before, string(b.Dump()), text)
		}
	})
}

// TestAFailedLoadChangesNothing fails at the last of several objects, while a client watches.
func TestAFailedLoadChangesNothing(t *testing.T) {
	created := func(loads bool) (after string) {
		inBubble(t, testserver.Options{StrictNamespaces: true}, func(b *bench) {
			b.fill(2)
			w := b.watch(podsPath, "resourceVersion=101")
			defer w.close()
			w.expect("ADDED b@102")
			if loads {
				require.ErrorContains(b, b.Load([]byte(`
kind: List
metadata: {resourceVersion: "5000"}
items:
- {apiVersion: v1, kind: Pod, metadata: {name: old, namespace: default, resourceVersion: "4000", uid: x}}
- {apiVersion: v1, kind: Pod, metadata: {name: new, namespace: default}}
- {apiVersion: v1, kind: Pod, metadata: {name: lost, namespace: nowhere}}
`)), "items[2], Pod nowhere/lost")
			}
			require.Equal(b, "102", b.ResourceVersion())
			require.Equal(b, []string{"a"}, b.list(podsPath+"?resourceVersionMatch=Exact&limit=5&resourceVersion=101").names(), "the history is kept")
			b.ok(http.MethodPost, podsPath, doc{"metadata": doc{"generateName": "c-"}, "spec": doc{}})
			event, err := w.next()
			require.NoError(b, err, "the watch is open")
			require.Equal(b, "ADDED", event.Type)
			after = string(b.Dump())
		})
		return after
	}
	require.Equal(t, created(false), created(true), "also the names and UIDs that come later")
}

// TestLoadedUIDsAreUnique loads an object with the UID that the server gave to a namespace that every server has.
func TestLoadedUIDsAreUnique(t *testing.T) {
	namespaces := api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	nodes := api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
	server := testserver.New(testserver.Options{})
	taken := must.Get(server.Get(namespaces, api.Key{Name: "kube-system"}))(t)
	require.NoError(t, server.Load([]byte(fmt.Sprintf(
		"kind: List\nitems: [{apiVersion: v1, kind: Node, metadata: {name: a, resourceVersion: '7', uid: %s}}]", taken.GetUID()))))
	loaded := must.Get(server.Get(nodes, api.Key{Name: "a"}))(t)
	require.Equal(t, taken.GetUID(), loaded.GetUID())
	kept := must.Get(server.Get(namespaces, api.Key{Name: "kube-system"}))(t)
	require.NotEqual(t, taken.GetUID(), kept.GetUID())
	require.Equal(t, server.ResourceVersion(), kept.GetResourceVersion(), "it is a new object")
	require.NoError(t, server.Load(server.Dump()))
}

// FuzzLoad checks that a text changes everything or nothing, and that what it leaves can be dumped and loaded.
func FuzzLoad(f *testing.F) {
	source := testserver.New(testserver.Options{})
	must.Get(source.Create(pods, pod("a")))(f)
	f.Add(source.Dump())
	f.Add([]byte("kind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		server := testserver.New(testserver.Options{})
		before := server.Dump()
		if err := server.Load(text); err != nil {
			require.Equal(t, string(before), string(server.Dump()))
			return
		}
		after := server.Dump()
		require.NoError(t, server.Load(after))
		require.Equal(t, withoutVersion(t, after), withoutVersion(t, server.Dump()))
	})
}

// TestLoadReplacesTheFirstObjects loads objects without a resource version that have the names of kept ones.
func TestLoadReplacesTheFirstObjects(t *testing.T) {
	const path = "/api/v1/namespaces/default"
	inBubble(t, testserver.Options{StrictNamespaces: true, NamespaceLifecycle: true}, func(b *bench) {
		first := b.ok(http.MethodGet, path, nil)
		first.SetFinalizers([]string{"leat.example/held"})
		first.SetAnnotations(map[string]string{"of": "the first"})
		b.ok(http.MethodPut, path, first)
		const list = `
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: flags, namespace: default}}
- {apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {team: shop}}}
`
		seen := map[string]bool{string(first.GetUID()): true}
		for range 2 {
			require.NoError(b, b.Load([]byte(list)))
			loaded := b.ok(http.MethodGet, path, nil)
			require.Equal(b, "shop", loaded.GetLabels()["team"])
			require.Empty(b, loaded.GetAnnotations())
			require.Empty(b, loaded.GetFinalizers())
			require.Nil(b, loaded.GetDeletionTimestamp())
			require.Equal(b, first.Object["spec"], loaded.Object["spec"])
			require.Equal(b, first.Object["status"], loaded.Object["status"])
			require.False(b, seen[string(loaded.GetUID())], "it is a new object")
			seen[string(loaded.GetUID())] = true
			b.ok(http.MethodGet, mapsPath+"/flags", nil)
			require.Equal(b, []string{"default", "kube-node-lease", "kube-public", "kube-system"}, b.list("/api/v1/namespaces").names())
		}
		require.NoError(b, b.Load(b.Dump()))
		before := string(b.Dump())
		for _, items := range []string{
			"- {apiVersion: v1, kind: Namespace, metadata: {name: default}}",
			"- {apiVersion: v1, kind: Namespace, metadata: {name: default, uid: x, resourceVersion: '7'}}",
		} {
			require.ErrorContains(b, b.Load([]byte("kind: List\nitems:\n"+items+"\n- {apiVersion: v1, kind: Namespace, metadata: {name: default}}")),
				`items[1], Namespace default: namespaces "default" already exists`)
			require.Equal(b, before, string(b.Dump()))
		}
	})
}
