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
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// scopedRig has an informer of the namespaces a, b and late, and the big widgets of the namespace big. The namespace
// late is refused.
type scopedRig struct {
	*fixture.Fixture
	set     *scopes.Set[*widget]
	widgets *cachedclient.Typed[*widget]
}

func scoped(t *testing.T, o cachedclient.Options) *scopedRig {
	f := fixture.New(t, testserver.Options{BookmarkInterval: time.Hour})
	r := &scopedRig{Fixture: f, set: scopes.New(widgets, scopes.Options[*widget]{})}
	for _, namespace := range []string{"a", "b", "late", "big"} {
		f.Create(widgets, fixture.Named(namespace, "one"))
		scope := scopes.Scope[*widget]{Source: apiclient.NewTyped[*widget](f.Client, widgets, namespace)}
		if namespace == "big" {
			scope.Name, scope.Selector = "big", api.Selector{Labels: "size=big"}
		}
		require.NoError(t, r.set.Add(scope))
	}
	f.Server.Inject(faults.Fault{Match: faults.Match{Namespace: "late"}, Effect: faults.Fail{Code: 403}})
	r.widgets = cachedclient.NewTyped(apiclient.NewTyped[*widget](f.Client, widgets, ""), r.set.Informer, o)
	f.Start(r.set.Run)
	return r
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
		require.ErrorIs(t, must.Err(r.widgets.Get(ctx, api.Key{Namespace: "elsewhere", Name: "one"})), cachedclient.ErrNotCached)
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		require.ErrorIs(t, must.Err(r.widgets.Get(short, api.Key{Namespace: "late", Name: "one"})), cachedclient.ErrNotSynced)

		gate := cachedclient.NewGate(cachedclient.GateOptions{})
		waits := func(write func()) (immediately bool, waited time.Duration) {
			stall := r.Server.Inject(faults.Fault{Effect: faults.StallEvents{}})
			write()
			synctest.Wait()
			again := make(chan struct{})
			immediately = gate.Ready(owner, func() { close(again) })
			if !immediately {
				fixture.Pass(time.Second)
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
			must.Get(r.widgets.Update(gate.Begin(ctx, owner), w, metav1.UpdateOptions{}))(t)
		})
		require.False(t, immediately)
		require.Less(t, waited, time.Second, "no other scope has reached the version")
		immediately, waited = waits(func() {
			require.NoError(t, r.widgets.Delete(gate.Begin(ctx, owner), one, metav1.DeleteOptions{}))
		})
		require.False(t, immediately)
		require.Less(t, waited, time.Second)
		immediately, _ = waits(func() {
			must.Get(r.widgets.Create(gate.Begin(ctx, owner), fixture.Named("elsewhere", "one"), metav1.CreateOptions{}))(t)
		})
		require.True(t, immediately, "no scope will show it")
		immediately, _ = waits(func() {
			must.Get(r.widgets.Create(gate.Begin(ctx, owner), fixture.Named("big", "small"), metav1.CreateOptions{}))(t)
		})
		require.True(t, immediately, "the selector of the scope does not match it, and minVersion is not known")
		must.Get(r.widgets.Update(gate.Begin(ctx, owner), bumped(t, r, "b"), metav1.UpdateOptions{}))(t)
		<-r.set.Remove("b", scopes.Notify)
		require.True(t, gate.Ready(owner, func() {}), "the scope was removed")
	})
}

func bumped(t *testing.T, r *scopedRig, namespace string) *widget {
	w := must.Get(r.widgets.Get(t.Context(), api.Key{Namespace: namespace, Name: "one"}))(t)
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
		stall := r.Server.Inject(faults.Fault{Effect: faults.StallEvents{}})
		must.Get(r.widgets.Update(t.Context(), w, metav1.UpdateOptions{}))(t)
		require.EqualValues(t, 1, must.Get(r.widgets.Get(t.Context(), key))(t).Spec.Size)
		cached, _ := r.set.Cache().Get(key)
		require.Zero(t, cached.Spec.Size)
		<-r.set.Remove("a", scopes.Notify)
		require.ErrorIs(t, must.Err(r.widgets.Get(t.Context(), key)), cachedclient.ErrNotCached)
		stall.Remove()
		require.NoError(t, r.widgets.Delete(t.Context(), api.Key{Namespace: "b", Name: "one"}, metav1.DeleteOptions{}))
		_, err := r.widgets.Get(t.Context(), api.Key{Namespace: "b", Name: "one"})
		require.Error(t, err)
		require.NotErrorIs(t, err, cachedclient.ErrNotCached)
	})
}

// TestScopesWakeAGateWithoutChanges removes a scope while a Gate waits for a write there. No change of an object tells
// the Gate.
func TestScopesWakeAGateWithoutChanges(t *testing.T) {
	for _, tc := range []struct {
		name, scope string
		removal     scopes.Removal
	}{
		{"silently", "a", scopes.Silent},
		{"without objects", "empty", scopes.Notify},
	} {
		fixture.Bubble(t, tc.name, func(t *testing.T) {
			r := scoped(t, cachedclient.Options{})
			require.NoError(t, r.set.Add(scopes.Scope[*widget]{Source: apiclient.NewTyped[*widget](r.Client, widgets, "empty")}))
			synctest.Wait()
			stall := r.Server.Inject(faults.Fault{Effect: faults.StallEvents{}})
			defer stall.Remove()
			gate := cachedclient.NewGate(cachedclient.GateOptions{})
			must.Get(r.widgets.Create(gate.Begin(t.Context(), owner), fixture.Named(tc.scope, "two"), metav1.CreateOptions{}))(t)
			again := make(chan struct{})
			require.False(t, gate.Ready(owner, func() { close(again) }))
			started := time.Now()
			r.set.Remove(tc.scope, tc.removal)
			<-again
			require.Less(t, time.Since(started), time.Second)
		})
	}
}

// TestADeleteIsSeenWhileAScopeIsQuiet deletes an object of a namespace with two scopes. The other one has no events,
// so its version stays older than that of the object.
func TestADeleteIsSeenWhileAScopeIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scoped(t, cachedclient.Options{})
		require.NoError(t, r.set.Add(scopes.Scope[*widget]{
			Source: apiclient.NewTyped[*widget](r.Client, widgets, "a"), Selector: api.Selector{Labels: "size=big"},
		}))
		synctest.Wait()
		must.Get(r.widgets.Update(t.Context(), bumped(t, r, "a"), metav1.UpdateOptions{}))(t)
		synctest.Wait()
		gate := cachedclient.NewGate(cachedclient.GateOptions{})
		key := api.Key{Namespace: "a", Name: "one"}
		require.NoError(t, r.widgets.Delete(gate.Begin(t.Context(), owner), key, metav1.DeleteOptions{}))
		again := make(chan struct{})
		require.False(t, gate.Ready(owner, func() { close(again) }), "the object may have moved to the other scope")
		started := time.Now()
		<-again
		require.LessOrEqual(t, time.Since(started), time.Second)
	})
}

// TestAReadWaitsForNoBatch reads a listed namespace while a batch of another one is being applied.
func TestAReadWaitsForNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scoped(t, cachedclient.Options{})
		must.Get(r.widgets.Get(t.Context(), api.Key{Namespace: "a", Name: "one"}))(t)
		entered, leave := make(chan struct{}), make(chan struct{})
		informer.AddIndex(r.set.Informer, func(w *widget) []string {
			if w.Name == "slow" {
				close(entered)
				<-leave
			}
			return nil
		})
		r.Create(widgets, fixture.Named("b", "slow"))
		<-entered
		must.Get(r.widgets.Get(t.Context(), api.Key{Namespace: "a", Name: "one"}))(t)
		close(leave)
	})
}
