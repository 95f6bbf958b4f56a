package cachedclient_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

func TestGetCopiesAndPeekDoesNot(t *testing.T) {
	w := named("alpha", 1)
	w.Spec.Tags = []string{"a"}
	bubble(t, setting{have: []*widget{w}}, func(r *rig) {
		mine := r.get(alpha)
		mine.Spec.Tags[0] = "changed"
		require.Equal(r, []string{"a"}, r.get(alpha).Spec.Tags)
		cached, _ := r.informer.Cache().Get(alpha)
		require.Same(r, cached, must.Get(r.widgets.Peek(r.Context(), alpha))(r))
	})
}

func TestMissingObjectsAreNotFound(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		_, err := r.widgets.Get(r.Context(), alpha)
		require.True(r, apierrors.IsNotFound(err))
		require.EqualError(r, err, `get widgets.leat.test default/alpha: widgets.leat.test "alpha" not found`)
	})
}

// TestKeysAreCompleted omits the namespace with a confined client, and gives one for a cluster-scoped object.
func TestKeysAreCompleted(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		confined := cachedclient.NewTyped(apiclient.NewTyped[*widget](r.live.Client(), widgets, "default"), r.informer, cachedclient.Options{})
		require.EqualValues(r, 1, must.Get(confined.Get(r.Context(), api.Key{Name: "alpha"}))(r).Spec.Size)

		r.Create(planets, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "earth"}})
		live := apiclient.NewPartial[*widget](r.live.Client(), planets, "")
		i := informer.New(live, informer.Options[*widget]{})
		r.Start(i.Run)
		must.Get(cachedclient.NewPartial(live, i, cachedclient.Options{}).Get(r.Context(), api.Key{Namespace: "default", Name: "earth"}))(r)
	})
}

func TestReadsStartNoInformer(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		unread := cachedclient.NewPartial(&r.live.PartialClient, nil, cachedclient.Options{})
		_, err := unread.Get(r.Context(), alpha)
		require.ErrorIs(r, err, cachedclient.ErrNotCached)
		require.ErrorContains(r, err, "get widgets.leat.test default/alpha: cachedclient: no informer caches widgets.leat.test")
		_, err = unread.List(r.Context(), cachedclient.ListOptions{})
		var missing *cachedclient.NotCachedError
		require.ErrorAs(r, err, &missing)
		require.Equal(r, widgets, missing.Resource)

		live := cachedclient.NewPartial(&r.live.PartialClient, nil, cachedclient.Options{ReadLive: true})
		require.EqualValues(r, 1, must.Get(live.Get(r.Context(), alpha))(r).Spec.Size)
		require.NoError(r, live.Delete(r.Context(), alpha, metav1.DeleteOptions{}))
		require.True(r, apierrors.IsNotFound(must.Err(live.Get(r.Context(), alpha))))
	})
}

// TestReadsMayStartAnInformer has two clients of one collection. They share the informer that the first read starts.
func TestReadsMayStartAnInformer(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		factory := factory.New(factory.Options{})
		allowed := cachedclient.Options{Informers: factory, ReadLive: true}
		whole := cachedclient.NewTyped(r.live, nil, allowed)
		part := cachedclient.NewPartial(&r.live.PartialClient, nil, allowed)
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(r.Context(), owner)
		require.NoError(r, creates(named("beta", 2))(r.Context(), &rig{widgets: whole}))
		require.Empty(r, factory.Status(), "a write without a gate starts no informer")

		require.ErrorIs(r, must.Err(whole.Get(expired(r), alpha)), cachedclient.ErrNotSynced, "the factory does not run")
		stop := r.Start(factory.Run)
		list := must.Get(whole.List(r.Context(), cachedclient.ListOptions{}))(r)
		require.Equal(r, []string{"default/alpha=1", "default/beta=2"}, sizes(list.Items))
		require.EqualValues(r, 1, must.Get(part.Get(r.Context(), alpha))(r).Spec.Size)
		lists := 0
		for _, q := range r.Server.Requests() {
			if q.Verb == "watch" || q.Verb == "list" {
				lists++
			}
		}
		require.Equal(r, 2, lists, "one request of the rig's informer, one of the shared informer")

		resume := r.stallEvents()
		require.NoError(r, whole.Delete(ctx, alpha, metav1.DeleteOptions{}))
		a := callReady(g, owner)
		require.False(r, a.ready)
		resume()
		require.EqualValues(r, 1, a.calls.Load())

		stop()
		late := cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory})
		_, err := late.Get(r.Context(), alpha)
		require.ErrorIs(r, err, informer.ErrStopped)
		require.ErrorContains(r, err, "get widgets.leat.test default/alpha: ")
	})
}

// TestWritesBeforeTheFirstRead writes with a client that has not read yet. A shared informer runs already, and its
// cache does not show the writes.
func TestWritesBeforeTheFirstRead(t *testing.T) {
	for _, overlay := range []bool{false, true} {
		t.Run(fmt.Sprint("overlay=", overlay), func(t *testing.T) {
			bubble(t, setting{live: "default", have: []*widget{named("alpha", 1), named("gamma", 1)}}, func(r *rig) {
				factory := factory.New(factory.Options{})
				r.Start(factory.Run)
				must.Get(cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory}).Get(r.Context(), alpha))(r)

				resume := r.stallEvents()
				late := cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory, Overlay: overlay})
				g := cachedclient.NewGate(cachedclient.GateOptions{})
				ctx := g.Begin(r.Context(), owner)
				require.NoError(r, creates(named("beta", 2))(ctx, &rig{widgets: late}))
				require.NoError(r, late.Delete(ctx, alpha, metav1.DeleteOptions{}))
				require.NoError(r, late.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=gamma"}))
				a := callReady(g, owner)
				require.False(r, a.ready)
				if overlay {
					list := must.Get(late.List(r.Context(), cachedclient.ListOptions{}))(r)
					require.Equal(r, []string{"default/beta=2", "default/gamma=1"}, sizes(list.Items))
				}
				resume()
				require.EqualValues(r, 1, a.calls.Load())
				require.Zero(r, g.Stats().TimedOut)
				require.Equal(r, []string{"default/beta=2"}, sizes(must.Get(late.List(r.Context(), cachedclient.ListOptions{}))(r).Items))
			})
		})
	}
}

func expired(r *rig) context.Context {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	r.Cleanup(cancel)
	return ctx
}

func TestNamespacesThatAreNotCached(t *testing.T) {
	bubble(t, setting{namespace: "default", have: []*widget{named("alpha", 1)}}, func(r *rig) {
		require.EqualValues(r, 1, r.get(alpha).Spec.Size)
		_, err := r.widgets.Get(r.Context(), api.Key{Namespace: "other", Name: "alpha"})
		require.ErrorIs(r, err, cachedclient.ErrNotCached)
		require.ErrorContains(r, err, `does not cache namespace "other"`)
		_, err = r.widgets.List(r.Context(), cachedclient.ListOptions{Namespaces: []string{"default", "other"}})
		require.ErrorIs(r, err, cachedclient.ErrNotCached)
	})
}

// TestReadsWaitForTheFirstList also checks that the error says why there is no list.
func TestReadsWaitForTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(testserver.Options{})
		server.Register(widgets)
		must.Get(server.Create(widgets, named("alpha", 1)))(t)
		forbidden := server.Inject(faults.Fault{Effect: faults.Fail{Code: 403}})
		fixture.Start(t, server.Run)
		c := must.Get(apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport}))(t)
		t.Cleanup(c.CloseIdleConnections)
		live := apiclient.NewTyped[*widget](c, widgets, "")
		i := informer.New(live, informer.Options[*widget]{})
		reads := cachedclient.NewTyped(live, i, cachedclient.Options{})
		stop := fixture.Start(t, i.Run)

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := reads.Get(ctx, alpha)
		require.ErrorIs(t, err, cachedclient.ErrNotSynced)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, apierrors.IsForbidden(err))

		forbidden.Remove()
		require.Len(t, must.Get(reads.List(t.Context(), cachedclient.ListOptions{}))(t).Items, 1)

		never := informer.New(live, informer.Options[*widget]{})
		server.Inject(faults.Fault{Effect: faults.Fail{Code: 403}})
		fixture.Start(t, never.Run)()
		require.ErrorIs(t, must.Err(cachedclient.NewTyped(live, never, cachedclient.Options{}).Get(t.Context(), alpha)), informer.ErrStopped)
		stop()
	})
}

func TestConstructorsPanicOnMisuse(t *testing.T) {
	c := must.Get(apiclient.New(apiclient.Config{Host: "http://nowhere.memory"}))(t)
	i := informer.New(apiclient.NewPartial[*widget](c, widgets, ""), informer.Options[*widget]{})
	require.PanicsWithValue(t, "cachedclient: the informer is of widgets.leat.test, but the API client is of planets.leat.test", func() {
		cachedclient.NewPartial(apiclient.NewPartial[*widget](c, planets, ""), i, cachedclient.Options{})
	})
	require.PanicsWithValue(t, "cachedclient: the API client is nil; it is needed for writes", func() {
		cachedclient.NewTyped(nil, i, cachedclient.Options{})
	})
	require.PanicsWithValue(t, "cachedclient: the API client is nil; it is needed for writes", func() {
		cachedclient.NewPartial[*widget](nil, nil, cachedclient.Options{})
	})
}
