package cachedclient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/scopes"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// scopedRig has an informer of the namespaces a, b and late, and the big widgets of the namespace big. The namespace
// late is refused.
type scopedRig struct {
	server  *testserver.Server
	set     *scopes.Set[*widget]
	widgets *cachedclient.Typed[*widget]
}

func scoped(t *testing.T, o cachedclient.Options) *scopedRig {
	server := testserver.New(testserver.Options{BookmarkInterval: time.Hour})
	server.Define(testserver.Definition{Resource: widgets})
	inBackground(t, server.Run)
	c, err := apiclient.New(apiclient.Config{Host: server.URL(), Transport: server.Client().Transport})
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	r := &scopedRig{server: server, set: scopes.New(widgets, scopes.Options[*widget]{})}
	for _, namespace := range []string{"a", "b", "late", "big"} {
		_, err := server.Create(widgets, in(namespace, "one"))
		require.NoError(t, err)
		scope := scopes.Scope[*widget]{Source: apiclient.NewTyped[*widget](c, widgets, namespace)}
		if namespace == "big" {
			scope.Name, scope.Selector = "big", api.Selector{Labels: "size=big"}
		}
		require.NoError(t, r.set.Add(scope))
	}
	server.Inject(faults.Fault{Match: faults.Match{Namespace: "late"}, Effect: faults.Fail{Code: 403}})
	r.widgets = cachedclient.NewTyped(apiclient.NewTyped[*widget](c, widgets, ""), r.set.Informer, o)
	inBackground(t, r.set.Run)
	return r
}

func in(namespace, name string) *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestScopesAreWaitedForByNamespace reads and writes namespaces while another one has no list and no version.
func TestScopesAreWaitedForByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scoped(t, cachedclient.Options{})
		ctx := t.Context()
		one := api.Key{Namespace: "a", Name: "one"}
		w, err := r.widgets.Get(ctx, one)
		require.NoError(t, err, "the first list of its scope is enough")
		require.False(t, runstate.IsClosed(r.set.Synced()))
		_, err = r.widgets.Get(ctx, api.Key{Namespace: "elsewhere", Name: "one"})
		require.ErrorIs(t, err, cachedclient.ErrNotCached)
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = r.widgets.Get(short, api.Key{Namespace: "late", Name: "one"})
		require.ErrorIs(t, err, cachedclient.ErrNotSynced)

		gate := cachedclient.NewGate(cachedclient.GateOptions{})
		waits := func(write func()) (immediately bool, waited time.Duration) {
			stall := r.server.Inject(faults.Fault{Effect: faults.StallEvents{}})
			write()
			synctest.Wait()
			again := make(chan struct{})
			immediately = gate.Ready(owner, func() { close(again) })
			if !immediately {
				<-time.After(time.Second)
				synctest.Wait()
				require.False(t, runstate.IsClosed(again))
				started := time.Now()
				stall.Remove()
				<-again
				waited = time.Since(started)
			}
			stall.Remove()
			synctest.Wait()
			return immediately, waited
		}
		immediately, waited := waits(func() {
			w.Spec.Size = 3
			_, err := r.widgets.Update(gate.Begin(ctx, owner), w, metav1.UpdateOptions{})
			require.NoError(t, err)
		})
		require.False(t, immediately)
		require.Less(t, waited, time.Second, "no other scope has reached the version")
		immediately, waited = waits(func() {
			require.NoError(t, r.widgets.Delete(gate.Begin(ctx, owner), one, metav1.DeleteOptions{}))
		})
		require.False(t, immediately)
		require.Less(t, waited, time.Second)
		immediately, _ = waits(func() {
			_, err := r.widgets.Create(gate.Begin(ctx, owner), in("elsewhere", "one"), metav1.CreateOptions{})
			require.NoError(t, err)
		})
		require.True(t, immediately, "no scope will show it")
		immediately, _ = waits(func() {
			_, err := r.widgets.Create(gate.Begin(ctx, owner), in("big", "small"), metav1.CreateOptions{})
			require.NoError(t, err)
		})
		require.True(t, immediately, "the selector of the scope does not match it, and minVersion is not known")
		_, err = r.widgets.Update(gate.Begin(ctx, owner), bumped(t, r, "b"), metav1.UpdateOptions{})
		require.NoError(t, err)
		<-r.set.Remove("b", scopes.Notify)
		require.True(t, gate.Ready(owner, func() {}), "the scope was removed")
	})
}

func bumped(t *testing.T, r *scopedRig, namespace string) *widget {
	w, err := r.widgets.Get(t.Context(), api.Key{Namespace: namespace, Name: "one"})
	require.NoError(t, err)
	w.Spec.Size++
	return w
}

// TestOverlayOfScopes writes to a scope while another one has no version. The overlay shows the write until the cache
// does, and drops it when its scope is removed.
func TestOverlayOfScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scoped(t, cachedclient.Options{Overlay: true})
		key := api.Key{Namespace: "a", Name: "one"}
		w := bumped(t, r, "a")
		stall := r.server.Inject(faults.Fault{Effect: faults.StallEvents{}})
		_, err := r.widgets.Update(t.Context(), w, metav1.UpdateOptions{})
		require.NoError(t, err)
		shown, err := r.widgets.Get(t.Context(), key)
		require.NoError(t, err)
		require.EqualValues(t, 1, shown.Spec.Size)
		cached, _ := r.set.Cache().Get(key)
		require.Zero(t, cached.Spec.Size)
		<-r.set.Remove("a", scopes.Notify)
		_, err = r.widgets.Get(t.Context(), key)
		require.ErrorIs(t, err, cachedclient.ErrNotCached)
		stall.Remove()
		require.NoError(t, r.widgets.Delete(t.Context(), api.Key{Namespace: "b", Name: "one"}, metav1.DeleteOptions{}))
		_, err = r.widgets.Get(t.Context(), api.Key{Namespace: "b", Name: "one"})
		require.Error(t, err)
		require.NotErrorIs(t, err, cachedclient.ErrNotCached)
	})
}
