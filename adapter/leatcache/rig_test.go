package leatcache_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/testserver/cluster"
)

// rig is a typed test server with four pods in three namespaces, in a bubble.
type rig struct {
	*testing.T
	cluster *cluster.Cluster
	direct  client.Client // without a cache
}

// run runs f in a bubble with a rig.
func run(t *testing.T, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, cluster: cluster.Start(t, cluster.Options{Lenient: true})}
		r.direct = must.Get(client.New(r.cluster.Config(), client.Options{}))(t)
		for _, p := range []struct{ namespace, name, app, node string }{
			{"a", "one", "web", "n1"}, {"a", "two", "db", "n1"}, {"b", "one", "web", "n2"}, {"c", "one", "db", "n1"},
		} {
			r.create(p.namespace, p.name, p.app, p.node)
		}
		require.NoError(t, r.direct.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}))
		f(r)
	})
}

func (r *rig) create(namespace, name, app, node string) *corev1.Pod {
	r.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
	require.NoError(r, r.direct.Create(r.Context(), pod))
	return pod
}

// make makes a cache that does not run.
func (r *rig) make(own leatcache.Options, o cache.Options) cache.Cache {
	r.Helper()
	return must.Get(own.New(r.cluster.Config(), o))(r)
}

// start runs a cache until the test ends, or until the returned function is called.
func (r *rig) start(c cache.Cache) (stop func()) {
	stop = fixture.Start(r, c.Start)
	synctest.Wait()
	return stop
}

// cache makes and starts a cache with the default Options.
func (r *rig) cache(o cache.Options) cache.Cache {
	r.Helper()
	c := r.make(leatcache.Options{}, o)
	r.start(c)
	return c
}

// names returns the pods that a cache lists, as "namespace/name", sorted.
func (r *rig) names(c client.Reader, opts ...client.ListOption) []string {
	r.Helper()
	var list corev1.PodList
	require.NoError(r, c.List(r.Context(), &list, opts...))
	return namesOf(list.Items)
}

func namesOf(pods []corev1.Pod) []string {
	names := []string{}
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

// holdings are the ways to hold objects that tests repeat.
func holdings() map[string]informer.Holding[client.Object] {
	return map[string]informer.Holding[client.Object]{"whole": nil, "packed": packed.Bytes[client.Object]()}
}

// all runs f with objects held in each way.
func all(t *testing.T, f func(*rig, leatcache.Options)) {
	t.Helper()
	for name, hold := range holdings() {
		t.Run(name, func(t *testing.T) {
			run(t, func(r *rig) { f(r, leatcache.Options{Hold: hold}) })
		})
	}
}
