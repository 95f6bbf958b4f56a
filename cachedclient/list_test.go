package cachedclient_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
)

// nineWidgets returns three widgets in each of three namespaces, with sizes 0 to 8, two nodes and two labels.
func nineWidgets() (ws []*widget) {
	for i, name := range []string{"c", "a", "b"} {
		for j, namespace := range []string{"z", "x", "y"} {
			w := named(name, int64(3*i+j))
			w.Namespace = namespace
			w.Labels = map[string]string{"parity": []string{"even", "odd"}[(3*i+j)%2]}
			w.Spec.Node = []string{"n1", "n2"}[j/2]
			w.Spec.Tags = []string{name, namespace}
			ws = append(ws, w)
		}
	}
	return ws
}

func TestListSelects(t *testing.T) {
	bubble(t, setting{have: nineWidgets()}, func(r *rig) {
		byNode := informer.AddIndex(r.informer, func(w *widget) []string { return []string{w.Spec.Node} })
		byTag := informer.AddIndex(r.informer, func(w *widget) []string { return w.Spec.Tags })
		odd := labels.SelectorFromSet(labels.Set{"parity": "odd"})
		live := cachedclient.NewTyped(r.live, nil, cachedclient.Options{ReadLive: true})
		for _, tc := range []struct {
			name  string
			o     cachedclient.ListOptions
			where []cachedclient.Selection[*widget]
			want  []string
		}{
			{"all objects, in order", cachedclient.ListOptions{}, nil, []string{"x/a=4", "x/b=7", "x/c=1", "y/a=5", "y/b=8", "y/c=2", "z/a=3", "z/b=6", "z/c=0"}},
			{"namespaces", cachedclient.ListOptions{Namespaces: []string{"z", "x"}}, nil, []string{"x/a=4", "x/b=7", "x/c=1", "z/a=3", "z/b=6", "z/c=0"}},
			{"labels", cachedclient.ListOptions{Labels: odd}, nil, []string{"x/b=7", "x/c=1", "y/a=5", "z/a=3"}},
			{"an index", cachedclient.ListOptions{}, []cachedclient.Selection[*widget]{cachedclient.By(byNode, "n2")}, []string{"y/a=5", "y/b=8", "y/c=2"}},
			{"an index of several values", cachedclient.ListOptions{}, []cachedclient.Selection[*widget]{cachedclient.By(byTag, "z")}, []string{"z/a=3", "z/b=6", "z/c=0"}},
			{"two indexes", cachedclient.ListOptions{}, []cachedclient.Selection[*widget]{cachedclient.By(byNode, "n1"), cachedclient.By(byTag, "a")}, []string{"x/a=4", "z/a=3"}},
			{"all options and two indexes", cachedclient.ListOptions{Namespaces: []string{"x", "y"}, Labels: odd}, []cachedclient.Selection[*widget]{cachedclient.By(byTag, "c"), cachedclient.By(byNode, "n1")}, []string{"x/c=1"}},
			{"no match", cachedclient.ListOptions{}, []cachedclient.Selection[*widget]{cachedclient.By(byNode, "n3")}, nil},
		} {
			list := must.Get(r.widgets.List(r.Context(), tc.o, tc.where...))(r)
			require.Equal(r, tc.want, sizes(list.Items), tc.name)
			require.Equal(r, r.informer.ResourceVersion(), list.ResourceVersion)
			require.NotNil(r, list.Items)

			list = must.Get(live.List(r.Context(), tc.o, tc.where...))(r)
			require.Equal(r, tc.want, sizes(list.Items), "live: %s", tc.name)
			require.Equal(r, r.Server.ResourceVersion(), list.ResourceVersion)
		}
	})
}

func TestListCopiesUnlessShared(t *testing.T) {
	bubble(t, setting{have: nineWidgets()}, func(r *rig) {
		list := must.Get(r.widgets.List(r.Context(), cachedclient.ListOptions{}))(r)
		for _, w := range list.Items {
			w.Spec.Tags[0] = "mine"
		}
		shared := must.Get(r.widgets.List(r.Context(), cachedclient.ListOptions{Shared: true, Limit: 5}))(r)
		rest := must.Get(shared.Next())(r)
		for _, w := range append(shared.Items, rest.Items...) {
			cached, _ := r.informer.Cache().Get(api.KeyOf(w))
			require.Same(r, cached, w)
			require.NotEqual(r, "mine", w.Spec.Tags[0])
		}
	})
}

// TestPagesShowOneMoment deletes all objects between two pages.
func TestPagesShowOneMoment(t *testing.T) {
	bubble(t, setting{have: nineWidgets()}, func(r *rig) {
		whole, err := r.widgets.List(r.Context(), cachedclient.ListOptions{})
		require.NoError(r, err)
		page := must.Get(r.widgets.List(r.Context(), cachedclient.ListOptions{Limit: 4}))(r)
		first := page
		for _, w := range whole.Items {
			require.NoError(r, r.Server.Delete(widgets, api.KeyOf(w)))
		}
		r.Create(widgets, named("late", 1))
		require.NoError(r, r.informer.WaitFor(r.Context(), r.Server.ResourceVersion()))

		var got []string
		var lengths []int
		for ; len(page.Items) > 0; page, err = page.Next() {
			got, lengths = append(got, sizes(page.Items)...), append(lengths, len(page.Items))
			require.Equal(r, 9-len(got), page.Remaining)
			require.Equal(r, whole.ResourceVersion, page.ResourceVersion)
		}
		require.NoError(r, err)
		require.Equal(r, sizes(whole.Items), got)
		require.Equal(r, []int{4, 4, 1}, lengths)

		<-time.After(5 * time.Minute)
		again, err := first.Next()
		require.NoError(r, err, "Next may be called twice")
		require.Equal(r, got[4:8], sizes(again.Items))
		<-time.After(1)
		_, err = first.Next()
		require.ErrorIs(r, err, cachedclient.ErrExpired)
		var expired *cachedclient.ExpiredError
		require.ErrorAs(r, err, &expired)
		require.Equal(r, whole.ResourceVersion, expired.ResourceVersion)
	})
}

// bare is an object that declares no labels.
type bare struct {
	Metadata struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

func (b *bare) GetNamespace() string       { return b.Metadata.Namespace }
func (b *bare) GetName() string            { return b.Metadata.Name }
func (b *bare) GetUID() types.UID          { return types.UID(b.Metadata.UID) }
func (b *bare) GetResourceVersion() string { return b.Metadata.ResourceVersion }

func TestLabelSelectionNeedsLabels(t *testing.T) {
	bubble(t, setting{have: nineWidgets()}, func(r *rig) {
		live := apiclient.NewPartial[*bare](r.live.Client(), widgets, "")
		i := informer.New(live, informer.Options[*bare]{})
		r.Start(i.Run)
		o := cachedclient.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"parity": "odd"})}
		_, err := cachedclient.NewPartial(live, i, cachedclient.Options{}).List(r.Context(), o)
		require.EqualError(r, err, "list widgets.leat.test: cachedclient: ListOptions.Labels needs objects with labels, and a *cachedclient_test.bare has none")

		for _, all := range []labels.Selector{nil, labels.Everything()} {
			o.Labels = all
			require.Len(r, must.Get(cachedclient.NewPartial(live, i, cachedclient.Options{}).List(r.Context(), o))(r).Items, 9)
		}
	})
}

// TestLiveListsOfObjectsWithoutLabels selects by labels on the server, because T declares none.
func TestLiveListsOfObjectsWithoutLabels(t *testing.T) {
	bubble(t, setting{have: nineWidgets()}, func(r *rig) {
		live := cachedclient.NewPartial(apiclient.NewPartial[*bare](r.live.Client(), widgets, ""), nil, cachedclient.Options{ReadLive: true})
		list := must.Get(live.List(r.Context(), cachedclient.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"parity": "odd"})}))(r)
		require.Len(r, list.Items, 4)
	})
}
