package cachedclient_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/reflector"
)

// benchClient returns a client of n widgets in ten namespaces, with ten widgets on each node. The overlay has a newer
// state of the first written widgets than the cache.
func benchClient(b *testing.B, n, written int) (*cachedclient.Typed[*widget], func(node string) cachedclient.Selection[*widget]) {
	b.Helper()
	f := newFeed("1")
	for j := range n {
		w := &widget{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("ns-", j%10), Name: fmt.Sprint("w-", j), UID: types.UID(fmt.Sprint(j)), ResourceVersion: "1",
			Labels: map[string]string{"app": fmt.Sprint("app-", j%100)},
		}}
		w.Spec.Node = fmt.Sprint("n", j/10)
		f.initial = append(f.initial, w)
	}
	i := informer.New(f, informer.Options[*widget]{Tuning: reflector.Tuning{NoWatchList: true}})
	byNode := informer.AddIndex(i, func(w *widget) []string { return []string{w.Spec.Node} })
	fixture.Start(b, i.Run)
	<-i.Synced()
	c, err := apiclient.New(apiclient.Config{Host: "http://nowhere.memory"})
	require.NoError(b, err)
	widgets := cachedclient.NewTyped(apiclient.NewTyped[*widget](c, widgets, ""), i, cachedclient.Options{Overlay: written > 0})
	for _, w := range f.initial[:written] {
		w = api.Clone(w)
		w.ResourceVersion = "2"
		widgets.Wrote(b.Context(), w)
	}
	return widgets, func(node string) cachedclient.Selection[*widget] { return cachedclient.By(byNode, node) }
}

func BenchmarkGet(b *testing.B) {
	for _, written := range []int{0, 100} {
		widgets, _ := benchClient(b, 10_000, written)
		key := api.Key{Namespace: "ns-5", Name: "w-5005"}
		for name, get := range map[string]func() (*widget, error){
			"get":  func() (*widget, error) { return widgets.Get(b.Context(), key) },
			"peek": func() (*widget, error) { return widgets.Peek(b.Context(), key) },
		} {
			b.Run(fmt.Sprintf("verb=%s/overlay=%d", name, written), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := get(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkList(b *testing.B) {
	for _, written := range []int{0, 100} {
		widgets, onNode := benchClient(b, 10_000, written)
		for _, c := range []struct {
			name  string
			o     cachedclient.ListOptions
			where []cachedclient.Selection[*widget]
			items int
		}{
			{"all", cachedclient.ListOptions{Shared: true}, nil, 10_000},
			{"namespace", cachedclient.ListOptions{Shared: true, Namespaces: []string{"ns-3"}}, nil, 1000},
			{"index", cachedclient.ListOptions{Shared: true}, []cachedclient.Selection[*widget]{onNode("n500")}, 10},
			{"index-copied", cachedclient.ListOptions{}, []cachedclient.Selection[*widget]{onNode("n500")}, 10},
		} {
			b.Run(fmt.Sprintf("what=%s/overlay=%d", c.name, written), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					list, err := widgets.List(b.Context(), c.o, c.where...)
					if err != nil || len(list.Items) != c.items {
						b.Fatal(len(list.Items), err)
					}
				}
			})
		}
	}
}

// BenchmarkGate measures a recorded write and the call of Ready after it, for a reconcile that does not wait.
func BenchmarkGate(b *testing.B) {
	widgets, _ := benchClient(b, 10_000, 0)
	w, err := widgets.Get(b.Context(), api.Key{Namespace: "ns-5", Name: "w-5005"})
	require.NoError(b, err)
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			g := cachedclient.NewGate(cachedclient.GateOptions{})
			all := make([]api.Key, keys)
			for i := range all {
				all[i] = api.Key{Namespace: "ns-5", Name: fmt.Sprint("owner-", i)}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				key := all[i%keys]
				widgets.Wrote(g.Begin(b.Context(), key), w)
				if !g.Ready(key, func() {}) {
					b.Fatal("the cache shows the write, but Ready returned false")
				}
			}
		})
	}
}
