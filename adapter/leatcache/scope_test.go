package leatcache_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/faults"
)

// waitFor advances the fake time until ok.
func waitFor(r *rig, ok func() bool) {
	r.Helper()
	for range 600 {
		synctest.Wait()
		if ok() {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
	require.Fail(r, "it did not happen within a minute")
}

func app(value string) labels.Selector { return labels.SelectorFromSet(labels.Set{"app": value}) }

// TestWhatIsCached has the selectors, namespaces and defaults, and which of them wins.
func TestWhatIsCached(t *testing.T) {
	pod := func(by cache.ByObject) map[client.Object]cache.ByObject {
		return map[client.Object]cache.ByObject{&corev1.Pod{}: by}
	}
	in := func(namespace string) fields.Selector {
		return fields.OneTermEqualSelector("metadata.namespace", namespace)
	}
	for name, test := range map[string]struct {
		o    cache.Options
		want []string
	}{
		"everything":            {cache.Options{}, []string{"a/one", "a/two", "b/one", "c/one"}},
		"default labels":        {cache.Options{DefaultLabelSelector: app("web")}, []string{"a/one", "b/one"}},
		"default fields":        {cache.Options{DefaultFieldSelector: in("a")}, []string{"a/one", "a/two"}},
		"labels of the type":    {cache.Options{ByObject: pod(cache.ByObject{Label: app("db")}), DefaultLabelSelector: app("web")}, []string{"a/two", "c/one"}},
		"fields of the type":    {cache.Options{ByObject: pod(cache.ByObject{Field: in("c")})}, []string{"c/one"}},
		"another type":          {cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Label: app("x")}}}, []string{"a/one", "a/two", "b/one", "c/one"}},
		"namespaces":            {cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}}, []string{"a/one", "a/two", "b/one"}},
		"all and one namespace": {cache.Options{DefaultNamespaces: map[string]cache.Config{cache.AllNamespaces: {}, "a": {LabelSelector: app("web")}}}, []string{"a/one", "b/one", "c/one"}},
		"namespaces of the type": {cache.Options{
			ByObject:          pod(cache.ByObject{Namespaces: map[string]cache.Config{"c": {}}}),
			DefaultNamespaces: map[string]cache.Config{"a": {}},
		}, []string{"c/one"}},
		"an empty map lifts the default": {cache.Options{
			ByObject: pod(cache.ByObject{Namespaces: map[string]cache.Config{}}), DefaultNamespaces: map[string]cache.Config{"a": {}},
		}, []string{"a/one", "a/two", "b/one", "c/one"}},
		"a namespace gets the selector of its type": {cache.Options{
			ByObject: pod(cache.ByObject{Label: app("web"), Namespaces: map[string]cache.Config{"a": {}, "c": {LabelSelector: app("db")}}}),
		}, []string{"a/one", "c/one"}},
		"a namespace gets the selector of the default namespace": {cache.Options{
			ByObject:             pod(cache.ByObject{Namespaces: map[string]cache.Config{"a": {}, "b": {}}}),
			DefaultNamespaces:    map[string]cache.Config{"a": {LabelSelector: app("db")}},
			DefaultLabelSelector: app("web"),
		}, []string{"a/two", "b/one"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(r *rig) {
				c := r.cache(test.o)
				require.ElementsMatch(r, test.want, r.names(c))
				for _, p := range test.want {
					key := must.Get(api.ParseKey(p))(r)
					require.NoError(r, c.Get(r.Context(), key, &corev1.Pod{}))
				}
				if test.o.DefaultFieldSelector == nil { // nodes have no such field
					require.NoError(r, c.List(r.Context(), &corev1.NodeList{}))
				}
			})
		})
	}
}

func TestANamespaceThatIsNotCached(t *testing.T) {
	run(t, func(r *rig) {
		c := r.cache(cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}}})
		const message = `leatcache: pods of namespace "b" are not cached: the options name other namespaces`
		require.EqualError(r, c.Get(r.Context(), client.ObjectKey{Namespace: "b", Name: "one"}, &corev1.Pod{}), message)
		require.EqualError(r, c.List(r.Context(), &corev1.PodList{}, client.InNamespace("b")), message)
	})
}

func TestTransforms(t *testing.T) {
	mark := func(by string) toolscache.TransformFunc {
		return func(object any) (any, error) {
			o := object.(client.Object)
			if o.GetName() == "two" {
				return nil, errors.New("not this one")
			}
			o.SetAnnotations(map[string]string{"by": by})
			return o, nil
		}
	}
	all(t, func(r *rig, own leatcache.Options) {
		c := r.make(own, cache.Options{
			DefaultTransform: mark("default"),
			ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
				Transform:  mark("type"),
				Namespaces: map[string]cache.Config{"a": {}, "b": {Transform: mark("namespace")}},
			}},
		})
		r.start(c)
		by := func(o client.Object, namespace, name string) string {
			require.NoError(r, c.Get(r.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o))
			return o.GetAnnotations()["by"]
		}
		require.Equal(r, "type", by(&corev1.Pod{}, "a", "one"))
		require.Equal(r, "namespace", by(&corev1.Pod{}, "b", "one"))
		require.Equal(r, "default", by(&corev1.Node{}, "", "n1"))
		require.ElementsMatch(r, []string{"a/one", "b/one"}, r.names(c), "an object that cannot be transformed is not cached")
	})
}

func TestDropManagedFields(t *testing.T) {
	run(t, func(r *rig) {
		for _, drop := range []bool{false, true} {
			c := r.make(leatcache.Options{DropManagedFields: drop}, cache.Options{})
			r.start(c)
			pod := &corev1.Pod{}
			require.NoError(r, c.Get(r.Context(), client.ObjectKey{Namespace: "a", Name: "one"}, pod))
			server := &corev1.Pod{}
			require.NoError(r, r.direct.Get(r.Context(), client.ObjectKeyFromObject(pod), server))
			if drop {
				require.Empty(r, pod.ManagedFields)
			} else {
				require.Equal(r, server.ManagedFields, pod.ManagedFields)
			}
		}
	})
}

// TestRefusedOptions names each option that leat cannot honour.
func TestRefusedOptions(t *testing.T) {
	off := false
	pod := func(by cache.ByObject) cache.Options {
		return cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: by}}
	}
	run(t, func(r *rig) {
		for want, o := range map[string]cache.Options{
			"Options.NewInformer is set": {NewInformer: func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
				return nil
			}},
			"Options.DefaultEnableWatchBookmarks is false":                             {DefaultEnableWatchBookmarks: &off},
			`Options.DefaultNamespaces["a"].EnableWatchBookmarks is false`:             {DefaultNamespaces: map[string]cache.Config{"a": {EnableWatchBookmarks: &off}}},
			"Options.ByObject[*v1.Pod].EnableWatchBookmarks is false":                  pod(cache.ByObject{EnableWatchBookmarks: &off}),
			`ByObject[*v1.Pod].Namespaces["a"].EnableWatchBookmarks is false`:          pod(cache.ByObject{Namespaces: map[string]cache.Config{"a": {EnableWatchBookmarks: &off}}}),
			"ByObject[*v1.Node].Namespaces is set, but Node are cluster-scoped":        {ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Namespaces: map[string]cache.Config{"a": {}}}}},
			"leatcache: ByObject[*leatcache_test.unregistered]: no kind is registered": {ByObject: map[client.Object]cache.ByObject{&unregistered{}: {}}},
		} {
			require.ErrorContains(r, must.Err(leatcache.New(r.cluster.Config(), o)), want)
		}
		require.EqualError(r, must.Err(leatcache.New(nil, cache.Options{})), "leatcache: the rest.Config is nil")
		require.ErrorContains(r, must.Err(leatcache.New(&rest.Config{Host: "http://exa mple"}, cache.Options{})), "leatcache: ")
	})
}

// unregistered is a type that no scheme has.
type unregistered struct{ corev1.Pod }

// TestHTTPClient sends the requests of informers with the client of the options.
func TestHTTPClient(t *testing.T) {
	run(t, func(r *rig) {
		httpClient := must.Get(rest.HTTPClientFor(r.cluster.Config()))(r)
		next := httpClient.Transport
		var pods atomic.Int64
		httpClient.Transport = roundTripper(func(q *http.Request) (*http.Response, error) {
			if q.URL.Path == "/api/v1/pods" {
				pods.Add(1)
			}
			return next.RoundTrip(q)
		})
		c := r.cache(cache.Options{HTTPClient: httpClient})
		require.Len(r, r.names(c), 4)
		require.Positive(r, pods.Load())
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

func TestDefaultWatchErrorHandler(t *testing.T) {
	run(t, func(r *rig) {
		r.cluster.Server.Inject(faults.Fault{Match: faults.Match{Resource: "pods"}, Times: 2, Effect: faults.Fail{Code: http.StatusForbidden}})
		var failures atomic.Int64
		c := r.cache(cache.Options{DefaultWatchErrorHandler: func(_ context.Context, of *toolscache.Reflector, err error) {
			require.Error(r, err)
			require.Empty(r, of.LastSyncResourceVersion())
			failures.Add(1)
		}})
		require.Len(r, r.names(c), 4)
		require.EqualValues(r, 2, failures.Load())
	})
}
