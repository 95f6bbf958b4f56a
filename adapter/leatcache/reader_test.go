package leatcache_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/adapter/leatcache"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// TestReads reads pods in all ways that a client.Reader has.
func TestReads(t *testing.T) {
	all(t, func(r *rig, own leatcache.Options) {
		c := r.make(own, cache.Options{})
		r.start(c)
		require.ElementsMatch(r, []string{"a/one", "a/two", "b/one", "c/one"}, r.names(c))
		require.ElementsMatch(r, []string{"a/one", "a/two"}, r.names(c, client.InNamespace("a")))
		require.ElementsMatch(r, []string{"a/one", "b/one"}, r.names(c, client.MatchingLabels{"app": "web"}))
		require.ElementsMatch(r, []string{"b/one"}, r.names(c, client.MatchingLabels{"app": "web"}, client.InNamespace("b")))
		require.Len(r, r.names(c, client.Limit(3)), 3)
		require.Empty(r, r.names(c, client.InNamespace("none")))

		var pod corev1.Pod
		require.NoError(r, c.Get(r.Context(), client.ObjectKey{Namespace: "b", Name: "one"}, &pod))
		var server corev1.Pod
		require.NoError(r, r.direct.Get(r.Context(), client.ObjectKeyFromObject(&pod), &server))
		server.SetGroupVersionKind(podKind)
		require.Equal(r, server, pod, "with its kind and its managedFields")
		err := c.Get(r.Context(), client.ObjectKey{Namespace: "b", Name: "none"}, &pod)
		require.True(r, apierrors.IsNotFound(err), "%v", err)

		var list corev1.PodList
		require.EqualError(r, c.List(r.Context(), &list, client.Continue("next")), "continue list option is not supported by the cache")
		require.NoError(r, c.List(r.Context(), &list))
		require.Equal(r, "continue-not-supported", list.Continue)
		for _, p := range list.Items {
			require.Equal(r, podKind, p.GroupVersionKind())
		}

		var node corev1.Node
		require.NoError(r, c.Get(r.Context(), client.ObjectKey{Namespace: "ignored", Name: "n1"}, &node))
		var nodes corev1.NodeList
		require.NoError(r, c.List(r.Context(), &nodes, client.InNamespace("ignored")))
		require.Len(r, nodes.Items, 1)
	})
}

// TestForms reads the same pods unstructured and as metadata. Each form has objects of its own.
func TestForms(t *testing.T) {
	all(t, func(r *rig, own leatcache.Options) {
		c := r.make(own, cache.Options{})
		r.start(c)
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(podKind)
		key := client.ObjectKey{Namespace: "a", Name: "one"}
		require.NoError(r, c.Get(r.Context(), key, u))
		node, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
		require.Equal(r, "n1", node)
		require.Equal(r, podKind, u.GroupVersionKind())
		us := &unstructured.UnstructuredList{}
		us.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		require.NoError(r, c.List(r.Context(), us, client.MatchingLabels{"app": "db"}))
		require.Len(r, us.Items, 2)

		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(podKind)
		require.NoError(r, c.Get(r.Context(), key, m))
		require.Equal(r, "web", m.Labels["app"])
		require.Equal(r, podKind, m.GroupVersionKind())
		ms := &metav1.PartialObjectMetadataList{}
		ms.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		require.NoError(r, c.List(r.Context(), ms, client.InNamespace("a")))
		require.Len(r, ms.Items, 2)
	})
}

// TestOwnership changes what a reader got. Only readers that disabled copies share it.
func TestOwnership(t *testing.T) {
	disabled := true
	key := client.ObjectKey{Namespace: "a", Name: "one"}
	for name, test := range map[string]struct {
		o      cache.Options
		get    []client.GetOption
		list   []client.ListOption
		shared bool
	}{
		"default":              {},
		"option of the read":   {get: []client.GetOption{client.UnsafeDisableDeepCopy}, list: []client.ListOption{client.UnsafeDisableDeepCopy}, shared: true},
		"default of the cache": {o: cache.Options{DefaultUnsafeDisableDeepCopy: &disabled}, shared: true},
		"of the type": {o: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {UnsafeDisableDeepCopy: &disabled},
		}}, shared: true},
	} {
		t.Run(name, func(t *testing.T) {
			all(t, func(r *rig, own leatcache.Options) {
				c := r.make(own, test.o)
				r.start(c)
				var pod, again corev1.Pod
				require.NoError(r, c.Get(r.Context(), key, &pod, test.get...))
				pod.Labels["changed"] = "by get"
				var list corev1.PodList
				require.NoError(r, c.List(r.Context(), &list, append(test.list, client.InNamespace("b"))...))
				list.Items[0].Labels["changed"] = "by list"

				shared := test.shared && own.Hold == nil
				require.NoError(r, c.Get(r.Context(), key, &again))
				require.Equal(r, shared, again.Labels["changed"] == "by get")
				require.NoError(r, c.Get(r.Context(), client.ObjectKey{Namespace: "b", Name: "one"}, &again))
				require.Equal(r, shared, again.Labels["changed"] == "by list")
			})
		})
	}
}

// TestATransformRemovesTheKind reads objects whose transform has removed their kind, to save memory.
func TestATransformRemovesTheKind(t *testing.T) {
	all(t, func(r *rig, own leatcache.Options) {
		c := r.make(own, cache.Options{DefaultTransform: func(object any) (any, error) {
			object.(client.Object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			return object, nil
		}})
		r.start(c)
		var pod corev1.Pod
		require.NoError(r, c.Get(r.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, &pod))
		require.Equal(r, podKind, pod.GroupVersionKind())
		var list corev1.PodList
		require.NoError(r, c.List(r.Context(), &list, client.InNamespace("b")))
		require.Equal(r, podKind, list.Items[0].GroupVersionKind())
	})
}

func TestFieldIndexes(t *testing.T) {
	nodeName := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	app := func(o client.Object) []string { return []string{o.GetLabels()["app"], "any"} }
	all(t, func(r *rig, own leatcache.Options) {
		c := r.make(own, cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, cache.AllNamespaces: {}}})
		require.NoError(r, c.IndexField(r.Context(), &corev1.Pod{}, "spec.nodeName", nodeName))
		r.start(c)
		require.NoError(r, c.IndexField(r.Context(), &corev1.Pod{}, "app", app), "after the start")
		require.ErrorContains(r, c.IndexField(r.Context(), &corev1.Pod{}, "app", app), `the field "app" of pods has an index already`)

		onN1 := client.MatchingFields{"spec.nodeName": "n1"}
		require.ElementsMatch(r, []string{"a/one", "a/two", "c/one"}, r.names(c, onN1))
		require.ElementsMatch(r, []string{"a/one", "a/two"}, r.names(c, onN1, client.InNamespace("a")))
		require.ElementsMatch(r, []string{"c/one"}, r.names(c, onN1, client.InNamespace("c")))
		require.ElementsMatch(r, []string{"a/two", "c/one"}, r.names(c, client.MatchingFields{"spec.nodeName": "n1", "app": "db"}))
		require.ElementsMatch(r, []string{"a/one"}, r.names(c, onN1, client.MatchingLabels{"app": "web"}))
		require.Len(r, r.names(c, client.MatchingFields{"app": "any"}), 4)

		var list corev1.PodList
		require.ErrorContains(r, c.List(r.Context(), &list, client.MatchingFields{"spec.other": "x"}), `the field "spec.other" of pods has no index`)
		require.ErrorContains(r, c.List(r.Context(), &list, client.MatchingFieldsSelector{
			Selector: fields.OneTermNotEqualSelector("spec.nodeName", "n1"),
		}), "another operator than =")

		r.create("c", "later", "web", "n1")
		waitFor(r, func() bool { return len(r.names(c, onN1)) == 4 })
	})
}

// TestAnIndexFunctionThatPanicsIsLogged has a function that panics for two pods.
func TestAnIndexFunctionThatPanicsIsLogged(t *testing.T) {
	run(t, func(r *rig) {
		core, logs := observer.New(zap.ErrorLevel)
		c := r.make(leatcache.Options{Logger: zap.New(core)}, cache.Options{})
		require.NoError(r, c.IndexField(r.Context(), &corev1.Pod{}, "app", func(o client.Object) []string {
			if o.GetNamespace() == "a" {
				panic("no such field")
			}
			return []string{o.GetLabels()["app"]}
		}))
		r.start(c)
		require.ElementsMatch(r, []string{"b/one"}, r.names(c, client.MatchingFields{"app": "web"}))
		require.Equal(r, 1, logs.Len())
		require.Equal(r, "reads by a field lack an object", logs.All()[0].Message)
		require.Contains(r, logs.All()[0].ContextMap()["err"], "no such field")
	})
}

func TestReadsBeforeTheStart(t *testing.T) {
	run(t, func(r *rig) {
		c := r.make(leatcache.Options{}, cache.Options{})
		var notStarted *cache.ErrCacheNotStarted
		require.ErrorAs(r, c.Get(r.Context(), client.ObjectKey{Name: "n1"}, &corev1.Node{}), &notStarted)
		require.ErrorAs(r, c.List(r.Context(), &corev1.NodeList{}), &notStarted)
	})
}

func TestReaderFailOnMissingInformer(t *testing.T) {
	run(t, func(r *rig) {
		c := r.cache(cache.Options{ReaderFailOnMissingInformer: true})
		var missing *cache.ErrResourceNotCached
		require.ErrorAs(r, c.List(r.Context(), &corev1.PodList{}), &missing)
		require.Equal(r, podKind, missing.GVK)
		require.ErrorAs(r, c.Get(r.Context(), client.ObjectKey{Name: "n1"}, &corev1.Node{}), &missing)
		_, err := c.GetInformer(r.Context(), &corev1.Pod{})
		require.NoError(r, err)
		require.Len(r, r.names(c), 4)
	})
}

func TestTypesThatCannotBeRead(t *testing.T) {
	run(t, func(r *rig) {
		c := r.cache(cache.Options{})
		unknown := &unstructured.Unstructured{}
		unknown.SetAPIVersion("example.com/v1")
		unknown.SetKind("Unknown")
		require.ErrorContains(r, c.Get(r.Context(), client.ObjectKey{Name: "x"}, unknown), "leatcache: find the resource of example.com/v1, Kind=Unknown")
		require.Error(r, c.Get(r.Context(), client.ObjectKey{Name: "x"}, &unstructured.Unstructured{}))
	})
}
