package cachedclient_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/faults"
)

// customJSON is a widget with a MarshalJSON that a test can replace.
type customJSON struct {
	widget
	marshal func() ([]byte, error) // nil for the JSON of the widget
}

func (m *customJSON) MarshalJSON() ([]byte, error) {
	if m.marshal != nil {
		return m.marshal()
	}
	return json.Marshal(&m.widget)
}

// TestObjectsThatCannotBeEncoded makes changes whose result has no JSON, or JSON that is not an object. The client
// sends nothing.
func TestObjectsThatCannotBeEncoded(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		c := cachedclient.NewTyped(apiclient.NewTyped[*customJSON](r.live.Client(), widgets, ""), nil, cachedclient.Options{ReadLive: true})
		marshalledBy := func(f func() ([]byte, error)) func(*customJSON) error {
			return func(m *customJSON) error {
				m.marshal = f
				return nil
			}
		}
		broken := errors.New("broken")
		_, _, err := c.Change(r.Context(), alpha, marshalledBy(func() ([]byte, error) { return nil, broken }))
		require.ErrorIs(r, err, broken)
		require.ErrorContains(r, err, "cachedclient: encode a *cachedclient_test.customJSON: ")
		text := marshalledBy(func() ([]byte, error) { return []byte(`"a string"`), nil })
		_, _, err = c.CreateOrPatch(r.Context(), &customJSON{widget: *named("alpha", 0)}, text)
		require.ErrorContains(r, err, "cachedclient: the JSON of a *cachedclient_test.customJSON is not an object: ")
		for _, q := range r.Server.Requests() {
			require.NotContains(r, []string{"patch", "update"}, q.Verb)
		}
	})
}

// TestChangesWithoutACache reads the object from the server, and returns the server's error.
func TestChangesWithoutACache(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		c := cachedclient.NewTyped(r.live, nil, cachedclient.Options{ReadLive: true})
		w, result, err := c.Change(r.Context(), alpha, func(w *widget) error {
			w.Spec.Size++
			return nil
		})
		require.NoError(r, err)
		require.Equal(r, cachedclient.Updated, result)
		require.EqualValues(r, 2, w.Spec.Size)

		r.Server.Inject(faults.Fault{Effect: faults.Fail{Code: 403}})
		_, err = c.List(r.Context(), cachedclient.ListOptions{})
		require.True(r, apierrors.IsForbidden(err), err)
	})
}

// TestListsFailAsGetsDo lists with an informer that cannot be started, and with one that has no list yet.
func TestListsFailAsGetsDo(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		factory := factory.New(factory.Options{})
		r.Start(factory.Run)()
		c := cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory, ReadLive: true})
		_, err := c.List(r.Context(), cachedclient.ListOptions{})
		require.ErrorIs(r, err, informer.ErrStopped)
		require.ErrorContains(r, err, "list widgets.leat.test: ")

		waits := cachedclient.NewTyped(r.live, informer.New(r.live, informer.Options[*widget]{}), cachedclient.Options{})
		require.ErrorIs(r, must.Err(waits.List(expired(r), cachedclient.ListOptions{})), cachedclient.ErrNotSynced)
	})
}

// TestEachErrorMatchesItsOwnVariable checks that each type of error matches its own variable and no other.
func TestEachErrorMatchesItsOwnVariable(t *testing.T) {
	kinds := map[error]error{
		cachedclient.ErrNotCached: &cachedclient.NotCachedError{}, cachedclient.ErrNotSynced: &cachedclient.NotSyncedError{},
		cachedclient.ErrExpired: &cachedclient.ExpiredError{},
	}
	for kind := range kinds {
		for other, err := range kinds {
			require.Equal(t, kind == other, errors.Is(err, kind), "%v is %v", err, kind)
		}
	}
}

// TestReadyAfterABookmark calls Ready again after a bookmark has brought the cache up to the write. A bookmark causes
// no notification, so this call ends the wait of the earlier callers.
func TestReadyAfterABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed("10")
		c := clientOf(t, f, cachedclient.Options{})
		g := cachedclient.NewGate(cachedclient.GateOptions{}) // without a logger
		c.Wrote(g.Begin(t.Context(), owner), at("u1", "12", 1))
		first, second := callReady(g, owner), callReady(g, owner)
		require.False(t, first.ready || second.ready)
		require.Equal(t, cachedclient.GateStats{Keys: 1, Waiting: 1}, g.Stats())
		f.send(watch.Bookmark, at("", "12", 0))
		require.True(t, callReady(g, owner).ready)
		require.EqualValues(t, 1, first.calls.Load())
		require.EqualValues(t, 1, second.calls.Load())
		require.Equal(t, cachedclient.GateStats{Waits: 1}, g.Stats())

		c.Wrote(g.Begin(t.Context(), owner), at("u1", "14", 1))
		late := callReady(g, owner)
		fixture.Pass(5 * time.Second)
		require.EqualValues(t, 1, late.calls.Load())
		require.Equal(t, cachedclient.GateStats{Waits: 2, TimedOut: 1}, g.Stats())
	})
}

// TestGateKeepsUnseenWrites writes for so many keys that the gate sweeps several times.
func TestGateKeepsUnseenWrites(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		const keys = 200
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		key := func(i int) api.Key { return api.Key{Namespace: "default", Name: fmt.Sprint("key-", i)} }
		resume := r.stallEvents()
		for i := range keys {
			require.NoError(r, creates(named(key(i).Name, 1))(g.Begin(r.Context(), key(i)), r))
		}
		for i := range keys {
			require.False(r, callReady(g, key(i)).ready, "the gate forgot the write of %v", key(i))
		}
		resume()
	})
}

// TestLateCallbackKeepsLaterWrites has one change of the cache that ends the waits of two keys. The first callback
// calls Ready for the other key and writes for it again, before the gate looks at that key. The gate keeps the later
// write.
func TestLateCallbackKeepsLaterWrites(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		keys := []api.Key{{Namespace: "default", Name: "one"}, {Namespace: "default", Name: "two"}}
		resume := r.stallEvents()
		written := must.Get(r.widgets.Create(g.Begin(r.Context(), keys[0]), named("alpha", 1), metav1.CreateOptions{}))(r)
		r.widgets.Wrote(g.Begin(r.Context(), keys[1]), written)
		calls := map[api.Key]int{}
		again := func(own, other api.Key) func() {
			return func() {
				calls[own]++
				if calls[other] > 0 {
					return
				}
				require.True(r, g.Ready(other, func() {}))
				later := *written
				later.ResourceVersion = "1000000"
				r.widgets.Wrote(g.Begin(r.Context(), other), &later)
			}
		}
		require.False(r, g.Ready(keys[0], again(keys[0], keys[1])))
		require.False(r, g.Ready(keys[1], again(keys[1], keys[0])))
		resume()
		require.Equal(r, map[api.Key]int{keys[0]: 1, keys[1]: 1}, calls)
		require.Equal(r, 1, g.Stats().Keys, "the gate forgot the later write")
	})
}

// TestGateWaitsForObjectsThatReturnToTheSelection writes twice: the selector stops matching the object, and matches it
// again. The log of the timeout names the last write.
func TestGateWaitsForObjectsThatReturnToTheSelection(t *testing.T) {
	w := named("alpha", 1)
	w.Labels = map[string]string{"app": "web"}
	bubble(t, setting{informer: informer.Options[*widget]{Selector: api.Selector{Labels: "app"}}, have: []*widget{w}}, func(r *rig) {
		core, logs := observer.New(zapcore.WarnLevel)
		g := cachedclient.NewGate(cachedclient.GateOptions{Logger: zap.New(core)})
		r.stallEvents()
		last := ""
		for _, labels := range []any{nil, map[string]any{"app": "web"}} {
			patch := mustMerge(r, map[string]any{"metadata": map[string]any{"labels": labels}})
			written := must.Get(r.widgets.Patch(g.Begin(r.Context(), owner), alpha, patch, patchOptions))(r)
			last = written.ResourceVersion
		}
		require.False(r, callReady(g, owner).ready)
		fixture.Pass(5 * time.Second)
		require.Equal(r, 1, logs.Len())
		require.Equal(r, last, logs.All()[0].ContextMap()["rv"])
	})
}

// TestOverlayBeforeTheFirstRead writes without a gate, with a client that has not read yet.
func TestOverlayBeforeTheFirstRead(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		factory := factory.New(factory.Options{})
		r.Start(factory.Run)
		must.Get(cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory}).Get(r.Context(), alpha))(r)
		r.stallEvents()
		late := cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory, Overlay: true})
		require.NoError(r, creates(named("beta", 2))(r.Context(), &rig{widgets: late}))
		list := must.Get(late.List(r.Context(), cachedclient.ListOptions{}))(r)
		require.Equal(r, []string{"default/alpha=1", "default/beta=2"}, sizes(list.Items))
	})
}
