package cachedclient_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
)

var (
	overlaid     = cachedclient.Options{Overlay: true}
	patchOptions apiclient.PatchOptions
)

// listed returns the items of a list. It requires that Get returns the same objects.
func (r *rig) listed(o cachedclient.ListOptions, where ...cachedclient.Selection[*widget]) []string {
	list := must.Get(r.widgets.List(r.Context(), o, where...))(r)
	for _, w := range list.Items {
		require.Equal(r, w, r.get(api.KeyOf(w)))
	}
	return sizes(list.Items)
}

func TestOverlayShowsWrites(t *testing.T) {
	gone := named("gone", 1)
	held := named("held", 1)
	held.Finalizers = []string{"leat.test/hold"}
	bubble(t, setting{client: overlaid, have: []*widget{named("alpha", 1), gone, held, named("other", 1)}}, func(r *rig) {
		byNode := informer.AddIndex(r.informer, func(w *widget) []string { return []string{w.Spec.Node} })
		resume := r.stallEvents()
		patched := must.Get(r.widgets.Patch(r.Context(), alpha, mustMerge(r, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"size": 2, "node": "n1"},
		}), patchOptions))(r)
		patched.Spec.Size = 99 // the overlay must not share what a write returns
		created := named("beta", 3)
		created.Spec.Node = "n1"
		require.NoError(r, creates(created)(r.Context(), r))
		require.NoError(r, r.widgets.Delete(r.Context(), api.KeyOf(gone), metav1.DeleteOptions{}))
		require.NoError(r, r.widgets.Delete(r.Context(), api.KeyOf(held), metav1.DeleteOptions{}))

		check := func() {
			require.Equal(r, []string{"default/alpha=2", "default/beta=3", "default/held=1", "default/other=1"}, r.listed(cachedclient.ListOptions{}))
			require.Equal(r, []string{"default/alpha=2", "default/beta=3"}, r.listed(cachedclient.ListOptions{}, cachedclient.By(byNode, "n1")))
			require.Equal(r, []string{"default/held=1", "default/other=1"}, r.listed(cachedclient.ListOptions{}, cachedclient.By(byNode, "")))
			require.Equal(r, []string{"default/alpha=2"}, r.listed(cachedclient.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"app": "web"})}))
			require.NotNil(r, r.get(api.KeyOf(held)).DeletionTimestamp)
			require.True(r, apierrors.IsNotFound(must.Err(r.widgets.Get(r.Context(), api.KeyOf(gone)))))
		}
		check()
		resume()
		check()
		cached, _ := r.informer.Cache().Get(alpha)
		require.Same(r, cached, must.Get(r.widgets.Peek(r.Context(), alpha))(r))
	})
}

// TestOverlayTable has default/alpha at version 10 and checks what reads return after writes and events.
func TestOverlayTable(t *testing.T) {
	type step func(c *cachedclient.Typed[*widget], f *feed)
	wrote := func(w *widget) step {
		return func(c *cachedclient.Typed[*widget], _ *feed) { c.Wrote(context.Background(), w) }
	}
	event := func(kind watch.EventType, w *widget) step {
		return func(_ *cachedclient.Typed[*widget], f *feed) { f.send(kind, w) }
	}
	other := at("u9", "20", 1)
	other.Name = "other"
	for _, tc := range []struct {
		name  string
		steps []step
		want  int64 // the size; 0 means that there is no object
	}{
		{"no write", nil, 1},
		{"a write", []step{wrote(at("u1", "12", 2))}, 2},
		{"an older event", []step{wrote(at("u1", "12", 2)), event(watch.Modified, at("u1", "11", 5))}, 2},
		{"a newer event", []step{wrote(at("u1", "12", 2)), event(watch.Modified, at("u1", "13", 5))}, 5},
		{"a newer event before the answer to the write", []step{event(watch.Modified, at("u1", "13", 5)), wrote(at("u1", "12", 2))}, 5},
		{"a newer delete", []step{wrote(at("u1", "12", 2)), event(watch.Deleted, at("u1", "13", 5))}, 0},
		{"a newer delete before the answer to the write", []step{event(watch.Deleted, at("u1", "13", 5)), wrote(at("u1", "12", 2))}, 0},
		{"a bookmark with a newer version", []step{wrote(at("u1", "12", 2)), event(watch.Bookmark, at("", "13", 0))}, 2},
		{"an older write", []step{wrote(at("u1", "12", 2)), wrote(at("u1", "11", 3))}, 2},
		{"a newer write", []step{wrote(at("u1", "12", 2)), wrote(at("u1", "13", 3))}, 3},
		{"a new object", []step{wrote(at("u2", "12", 2))}, 2},
		{"a new object, and the delete of the old one", []step{wrote(at("u2", "12", 2)), event(watch.Deleted, at("u1", "11", 1))}, 2},
		{"a new object, deleted before its event", []step{wrote(at("u2", "12", 2)), event(watch.Added, other)}, 1},
		{"a version without order", []step{wrote(at("u1", "x", 2))}, 1},
	} {
		fixture.Bubble(t, tc.name, func(t *testing.T) {
			f := newFeed("10", at("u1", "10", 1))
			c := clientOf(t, f, overlaid)
			for _, s := range tc.steps {
				s(c, f)
			}
			w, err := c.Get(t.Context(), alpha)
			list, errList := c.List(t.Context(), cachedclient.ListOptions{})
			require.NoError(t, errList)
			var shown *widget
			for _, item := range list.Items {
				if item.Name == alpha.Name {
					shown = item
				}
			}
			if tc.want == 0 {
				require.True(t, apierrors.IsNotFound(err))
				require.Nil(t, shown)
				return
			}
			require.NoError(t, err)
			require.Equal(t, w, shown)
			require.Equal(t, tc.want, w.Spec.Size)
		})
	}
}

// TestOverlayAfterDeletes deletes written objects and creates them again. One answer arrives late.
func TestOverlayAfterDeletes(t *testing.T) {
	bubble(t, setting{client: overlaid, have: []*widget{named("alpha", 1)}}, func(r *rig) {
		resume := r.stallEvents()
		late := must.Get(r.widgets.Patch(r.Context(), alpha, mustMerge(r, map[string]any{"spec": map[string]any{"size": 2}}), patchOptions))(r)
		require.NoError(r, r.widgets.Delete(r.Context(), alpha, metav1.DeleteOptions{}))
		r.widgets.Wrote(r.Context(), late) // an answer that arrives after the answer to the delete
		require.Empty(r, r.listed(cachedclient.ListOptions{}))
		require.NoError(r, creates(named("alpha", 3))(r.Context(), r))
		require.Equal(r, []string{"default/alpha=3"}, r.listed(cachedclient.ListOptions{}))
		require.NoError(r, r.widgets.Delete(r.Context(), alpha, metav1.DeleteOptions{}))
		require.Empty(r, r.listed(cachedclient.ListOptions{}))
		must.Get(r.Server.Create(widgets, named("alpha", 4)))(r) // by another client
		resume()
		require.Equal(r, []string{"default/alpha=4"}, r.listed(cachedclient.ListOptions{}))
	})
}

// TestOverlayOfObjectsThatLeaveTheSelection makes writes after which the informer's selectors do not match the object.
// Reads do not show it.
func TestOverlayOfObjectsThatLeaveTheSelection(t *testing.T) {
	labelled := named("alpha", 1)
	labelled.Labels = map[string]string{"app": "web"}
	bubble(t, setting{
		client: overlaid, informer: informer.Options[*widget]{Selector: api.Selector{Labels: "app"}}, namespace: "default", have: []*widget{labelled},
	}, func(r *rig) {
		resume := r.stallEvents()
		must.Get(r.widgets.Patch(r.Context(), alpha, mustMerge(r, map[string]any{"metadata": map[string]any{"labels": nil}}), patchOptions))(r)
		elsewhere := named("beta", 1)
		elsewhere.Namespace, elsewhere.Labels = "elsewhere", labelled.Labels
		require.NoError(r, errors.Join(creates(named("beta", 1))(r.Context(), r), creates(elsewhere)(r.Context(), r)))
		require.Empty(r, r.listed(cachedclient.ListOptions{}))

		must.Get(r.widgets.Patch(r.Context(), alpha, mustMerge(r, map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "again"}}}), patchOptions))(r)
		require.Equal(r, []string{"default/alpha=1"}, r.listed(cachedclient.ListOptions{}))
		resume()
		require.Equal(r, []string{"default/alpha=1"}, r.listed(cachedclient.ListOptions{}))
	})
}

// TestOverlayDropsManagedFields checks that the overlay drops managedFields exactly if the informer does.
func TestOverlayDropsManagedFields(t *testing.T) {
	for _, keep := range []bool{false, true} {
		bubble(t, setting{client: overlaid, server: testserver.Options{ManagedFields: true}, informer: informer.Options[*widget]{Memory: reflector.Memory{KeepManagedFields: keep}}}, func(r *rig) {
			resume := r.stallEvents()
			require.NoError(r, creates(named("alpha", 1))(r.Context(), r))
			shown := r.get(alpha)
			require.Equal(r, keep, len(shown.ManagedFields) > 0)
			resume()
			require.Equal(r, shown, r.get(alpha))
		})
	}
}

func TestOverlayIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name  string
		limit int
		want  int
	}{{"a limit", 5, 5}, {"the default", 0, 1000}} {
		fixture.Bubble(t, tc.name, func(t *testing.T) {
			c := clientOf(t, newFeed("10"), cachedclient.Options{Overlay: true, OverlayLimit: tc.limit})
			for i := range tc.want + 3 {
				w := at(fmt.Sprint("u", i), fmt.Sprint(20+i), 1)
				w.Name = fmt.Sprintf("w-%04d", i)
				c.Wrote(t.Context(), w)
				<-time.After(1)
			}
			list := must.Get(c.List(t.Context(), cachedclient.ListOptions{}))(t)
			require.Len(t, list.Items, tc.want)
			require.Equal(t, "w-0003", list.Items[0].Name, "the oldest entries are removed first")
		})
	}
}

// TestOverlayAges has a cache that does not catch up with a write and a delete.
func TestOverlayAges(t *testing.T) {
	bubble(t, setting{client: cachedclient.Options{Overlay: true, OverlayAge: time.Minute}, have: []*widget{named("alpha", 1), named("beta", 1)}}, func(r *rig) {
		r.stallEvents()
		must.Get(r.widgets.Patch(r.Context(), alpha, mustMerge(r, map[string]any{"spec": map[string]any{"size": 2}}), patchOptions))(r)
		require.NoError(r, r.widgets.Delete(r.Context(), api.Key{Namespace: "default", Name: "beta"}, metav1.DeleteOptions{}))
		<-time.After(time.Minute - 1)
		require.Equal(r, []string{"default/alpha=2"}, r.listed(cachedclient.ListOptions{}))
		<-time.After(1)
		require.EqualValues(r, 1, r.get(api.Key{Namespace: "default", Name: "beta"}).Spec.Size)
		require.Equal(r, []string{"default/alpha=1", "default/beta=1"}, r.listed(cachedclient.ListOptions{}))
	})
}

// TestOverlayForgetsTheOldestDelete makes more deletes than the limit.
func TestOverlayForgetsTheOldestDelete(t *testing.T) {
	have := []*widget{named("a", 1), named("b", 1), named("c", 1)}
	bubble(t, setting{client: cachedclient.Options{Overlay: true, OverlayLimit: 2}, have: have}, func(r *rig) {
		r.stallEvents()
		for _, w := range have {
			require.NoError(r, r.widgets.Delete(r.Context(), api.KeyOf(w), metav1.DeleteOptions{}))
			<-time.After(1)
		}
		require.Equal(r, []string{"default/a=1"}, r.listed(cachedclient.ListOptions{}))
	})
}

// TestOverlayForgetsWhatTheCacheShows reads by Get and by List. Afterwards the overlay is empty, so reads take no lock.
func TestOverlayForgetsWhatTheCacheShows(t *testing.T) {
	bubble(t, setting{client: overlaid, have: []*widget{named("alpha", 1)}}, func(r *rig) {
		beta := api.Key{Namespace: "default", Name: "beta"}
		resume := r.stallEvents()
		require.NoError(r, creates(named("beta", 1))(r.Context(), r))
		require.EqualValues(r, 1, r.get(beta).Spec.Size)
		require.Equal(r, 1, cachedclient.OverlayEntries(&r.widgets.Partial))
		resume()
		require.EqualValues(r, 1, r.get(beta).Spec.Size)
		require.Zero(r, cachedclient.OverlayEntries(&r.widgets.Partial))

		resume = r.stallEvents()
		require.NoError(r, r.widgets.Delete(r.Context(), alpha, metav1.DeleteOptions{})) // the cache has it
		gamma := api.Key{Namespace: "default", Name: "gamma"}
		require.NoError(r, creates(named("gamma", 1))(r.Context(), r))
		require.NoError(r, r.widgets.Delete(r.Context(), gamma, metav1.DeleteOptions{})) // the cache does not have it
		require.Equal(r, 2, cachedclient.OverlayEntries(&r.widgets.Partial))
		resume()
		require.Equal(r, []string{"default/beta=1"}, r.listed(cachedclient.ListOptions{}))
		require.Zero(r, cachedclient.OverlayEntries(&r.widgets.Partial))
	})
}

// TestOverlayIgnoresWritesThatTheCacheShows records the answer to a write after its event.
func TestOverlayIgnoresWritesThatTheCacheShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed("10", at("u1", "10", 1))
		c := clientOf(t, f, overlaid)
		f.send(watch.Modified, at("u1", "13", 5))
		c.Wrote(t.Context(), at("u1", "12", 2))
		require.Zero(t, cachedclient.OverlayEntries(&c.Partial))
	})
}

// TestOverlayRemovesShownEntriesFirst has an overlay for two objects and writes three. The cache shows the second one,
// so the oldest one stays.
func TestOverlayRemovesShownEntriesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed("10")
		c := clientOf(t, f, cachedclient.Options{Overlay: true, OverlayLimit: 2})
		for _, written := range []struct{ name, version string }{{"a", "13"}, {"b", "12"}, {"c", "14"}} {
			w := at(written.name, written.version, 1)
			w.Name = written.name
			c.Wrote(t.Context(), w)
			if w.Name == "b" {
				f.send(watch.Added, w)
			}
			<-time.After(1)
		}
		list := must.Get(c.List(t.Context(), cachedclient.ListOptions{}))(t)
		require.Equal(t, []string{"default/a=1", "default/b=1", "default/c=1"}, sizes(list.Items))
	})
}

// TestOverlayKeepsObjectsOfAnotherUID deletes an object, by its UID, after another one of the same name was created.
func TestOverlayKeepsObjectsOfAnotherUID(t *testing.T) {
	bubble(t, setting{client: overlaid, have: []*widget{named("alpha", 1)}}, func(r *rig) {
		uid := r.get(alpha).UID
		r.stallEvents()
		r.Delete(widgets, alpha)
		require.NoError(r, creates(named("alpha", 2))(r.Context(), r))
		r.answer("delete", successWithoutUID)
		o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
		require.NoError(r, r.widgets.Delete(r.Context(), alpha, o))
		require.Equal(r, []string{"default/alpha=2"}, r.listed(cachedclient.ListOptions{}))
	})
}

// TestOverlayOfACompletedKey deletes an object with a key without a namespace.
func TestOverlayOfACompletedKey(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		r.widgets = cachedclient.NewTyped(apiclient.NewTyped[*widget](r.live.Client(), widgets, "default"), r.informer, overlaid)
		r.stallEvents()
		require.NoError(r, r.widgets.Delete(r.Context(), api.Key{Name: "alpha"}, metav1.DeleteOptions{}))
		require.Empty(r, r.listed(cachedclient.ListOptions{}))
	})
}
