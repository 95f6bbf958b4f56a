package cache_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

var pods = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(text)
	require.NoError(t, err)
	return s
}

func names(list []*pod) []string {
	names := []string{}
	for _, p := range list {
		names = append(names, api.FormatKey(api.KeyOf(p)))
	}
	slices.Sort(names)
	return names
}

func TestLister(t *testing.T) {
	ix := cache.New[*pod]()
	byNamespace := cache.AddIndex(ix, cache.ByNamespace[*pod])
	set(
		ix,
		&pod{namespace: "a", name: "1", labels: map[string]string{"app": "web", "tier": "front"}},
		&pod{namespace: "a", name: "2", labels: map[string]string{"app": "db"}},
		&pod{namespace: "b", name: "1", labels: map[string]string{"app": "web"}},
		&pod{namespace: "b", name: "3"},
		&pod{name: "cluster"},
	)
	old := ix.Snapshot()
	set(ix, &pod{namespace: "b", name: "4", labels: map[string]string{"app": "web"}})

	for name, l := range map[string]*cache.Lister[*pod]{
		"indexed":  cache.NewLister(ix, pods, cache.ListerOptions[*pod]{ByNamespace: byNamespace}),
		"scanning": cache.NewLister(ix, pods, cache.ListerOptions[*pod]{}),
	} {
		t.Run(name, func(t *testing.T) {
			everything := []string{"a/1", "a/2", "b/1", "b/3", "b/4", "cluster"}
			require.Equal(t, everything, names(l.List(nil)))
			require.Equal(t, everything, names(l.List(labels.Everything())))
			require.Empty(t, l.List(labels.Nothing()))
			require.Equal(t, []string{"a/1", "b/1", "b/4"}, names(l.List(selector(t, "app=web"))))
			require.Equal(t, []string{"b/1", "b/4"}, names(l.List(selector(t, "app in (web),!tier"))))

			b := l.Namespace("b")
			require.Equal(t, []string{"b/1", "b/3", "b/4"}, names(b.List(nil)))
			require.Equal(t, []string{"b/1", "b/4"}, names(b.List(selector(t, "app=web"))))
			require.Equal(t, []string{"cluster"}, names(l.Namespace("").List(nil)))
			require.Empty(t, l.Namespace("none").List(nil))

			p, err := b.Get("3")
			require.NoError(t, err)
			require.Equal(t, "3", p.name)
			p, err = b.Get("2")
			require.True(t, apierrors.IsNotFound(err))
			require.EqualError(t, err, `pods "2" not found`)
			require.Nil(t, p)
			p, err = l.Get(api.Key{Name: "cluster"})
			require.NoError(t, err)
			require.Equal(t, "cluster", p.name)
		})
	}

	elsewhere := cache.New[*pod]()
	set(elsewhere, &pod{namespace: "b", name: "9"})
	mistaken := cache.NewLister(elsewhere, pods, cache.ListerOptions[*pod]{ByNamespace: byNamespace})
	require.Equal(t, []string{"b/9"}, names(mistaken.Namespace("b").List(nil)), "an index of another cache is ignored")
	wrapped := cache.NewLister[*pod](struct{ cache.Reader[*pod] }{elsewhere}, pods, cache.ListerOptions[*pod]{ByNamespace: byNamespace})
	require.Equal(t, []string{"b/9"}, names(wrapped.Namespace("b").List(nil)))

	then := cache.NewLister(old, pods, cache.ListerOptions[*pod]{ByNamespace: byNamespace})
	require.Equal(t, []string{"b/1", "b/3"}, names(then.Namespace("b").List(nil)))
	require.Equal(t, []string{"a/1", "b/1"}, names(then.List(selector(t, "app=web"))))
}

func TestListsAreTheCallers(t *testing.T) {
	ix := cache.New[*pod]()
	idx := cache.AddIndex(ix, cache.ByNamespace[*pod])
	fill(ix, 50)
	l := cache.NewLister(ix, pods, cache.ListerOptions[*pod]{})
	for i, list := range [][]*pod{ix.List(), ix.Snapshot().List(), l.List(nil), l.Namespace("ns-1").List(nil), idx.ByIndex("ns-1")} {
		require.NotEmpty(t, list)
		clear(list)
		require.Equal(t, 50, ix.Len())
		require.NotContains(t, ix.List(), (*pod)(nil), fmt.Sprint(i))
		require.NotContains(t, idx.ByIndex("ns-1"), (*pod)(nil))
	}
}
