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
	"github.com/leatproject/leat/testserver"
)

// moody is a widget that says itself how it is written.
type moody struct {
	widget
	written func() ([]byte, error) // nil for as a widget
}

func (m *moody) MarshalJSON() ([]byte, error) {
	if m.written != nil {
		return m.written()
	}
	return json.Marshal(&m.widget)
}

// TestWhatCannotBeWritten is about changes that have no JSON, or none that is an object. Nothing is sent.
func TestWhatCannotBeWritten(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		c := cachedclient.NewTyped(apiclient.NewTyped[*moody](r.live.Client(), widgets, ""), nil, cachedclient.Options{ReadLive: true})
		written := func(f func() ([]byte, error)) func(*moody) error {
			return func(m *moody) error {
				m.written = f
				return nil
			}
		}
		broken := errors.New("broken")
		_, _, err := c.Change(r.Context(), alpha, written(func() ([]byte, error) { return nil, broken }))
		require.ErrorIs(r, err, broken)
		require.ErrorContains(r, err, "cachedclient: write a *cachedclient_test.moody: ")
		text := written(func() ([]byte, error) { return []byte(`"a string"`), nil })
		_, _, err = c.CreateOrPatch(r.Context(), &moody{widget: *named("alpha", 0)}, text)
		require.ErrorContains(r, err, "cachedclient: a *cachedclient_test.moody is not written as an object: ")
		for _, q := range r.server.Requests() {
			require.NotContains(r, []string{"patch", "update"}, q.Verb)
		}
	})
}

// TestChangesWithoutACache begin with what the server has, or fail with its error.
func TestChangesWithoutACache(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		c := cachedclient.NewTyped(r.live, nil, cachedclient.Options{ReadLive: true})
		w, outcome, err := c.Change(r.Context(), alpha, func(w *widget) error {
			w.Spec.Size++
			return nil
		})
		require.NoError(r, err)
		require.Equal(r, cachedclient.Updated, outcome)
		require.EqualValues(r, 2, w.Spec.Size)

		r.server.Inject(testserver.Fault{Effect: testserver.Fail{Code: 403}})
		_, err = c.List(r.Context(), cachedclient.ListOptions{})
		require.True(r, apierrors.IsForbidden(err), err)
	})
}

// TestListsFailAsGetsDo has an informer that cannot be started, and one that has no list yet.
func TestListsFailAsGetsDo(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		factory := informer.NewFactory(informer.FactoryOptions{})
		inBackground(r.T, factory.Run)()
		c := cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory, ReadLive: true})
		_, err := c.List(r.Context(), cachedclient.ListOptions{})
		require.ErrorIs(r, err, informer.ErrStopped)
		require.ErrorContains(r, err, "list widgets.leat.test: ")

		waits := cachedclient.NewTyped(r.live, informer.New(r.live, informer.Options[*widget]{}), cachedclient.Options{})
		_, err = waits.List(expired(r), cachedclient.ListOptions{})
		require.ErrorIs(r, err, cachedclient.ErrNotSynced)
	})
}

// TestErrorsAreToldApart matches each kind of error with its own variable only.
func TestErrorsAreToldApart(t *testing.T) {
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

// TestAQuestionAfterABookmark asks a gate again when a bookmark has brought the cache up to the write.
// The gate hears of no bookmark, so whoever waits has to hear of it from the one who asks.
func TestAQuestionAfterABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed("10")
		c := told(t, f, cachedclient.Options{})
		g := cachedclient.NewGate(cachedclient.GateOptions{}) // without a logger
		c.Wrote(g.Begin(t.Context(), owner), at("u1", "12", 1))
		first, second := ask(g, owner), ask(g, owner)
		require.False(t, first.ready || second.ready)
		require.Equal(t, cachedclient.GateStats{Keys: 1, Waiting: 1}, g.Stats())
		f.say(watch.Bookmark, at("", "12", 0))
		require.True(t, ask(g, owner).ready)
		require.EqualValues(t, 1, first.calls.Load())
		require.EqualValues(t, 1, second.calls.Load())
		require.Equal(t, cachedclient.GateStats{Waits: 1}, g.Stats())

		c.Wrote(g.Begin(t.Context(), owner), at("u1", "14", 1))
		late := ask(g, owner)
		<-time.After(5 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, late.calls.Load())
		require.Equal(t, cachedclient.GateStats{Waits: 2, TimedOut: 1}, g.Stats())
	})
}

// TestGateForgetsNothingThatIsAwaited writes for more keys than are kept without a look at them.
func TestGateForgetsNothingThatIsAwaited(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		const keys = 200
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		key := func(i int) api.Key { return api.Key{Namespace: "default", Name: fmt.Sprint("key-", i)} }
		thaw := r.freeze()
		for i := range keys {
			require.NoError(r, creates(named(key(i).Name, 1))(g.Begin(r.Context(), key(i)), r))
		}
		for i := range keys {
			require.False(r, ask(g, key(i)).ready, "the write of %v is forgotten", key(i))
		}
		thaw()
	})
}

// TestALateCallConcernsItsOwnWrites has one change of the cache that lets two keys go on. The first to go on asks for
// the other and writes for it again, before the gate comes to that one. The gate still waits for the later write.
func TestALateCallConcernsItsOwnWrites(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		keys := []api.Key{{Namespace: "default", Name: "one"}, {Namespace: "default", Name: "two"}}
		thaw := r.freeze()
		written, err := r.widgets.Create(g.Begin(r.Context(), keys[0]), named("alpha", 1), metav1.CreateOptions{})
		require.NoError(r, err)
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
		thaw()
		require.Equal(r, map[api.Key]int{keys[0]: 1, keys[1]: 1}, calls)
		require.Equal(r, 1, g.Stats().Keys, "what was written later is forgotten")
	})
}

// TestGateWaitsForWhatComesBackIntoTheSelection has an object that leaves the selection and comes back. What is waited
// for is the last write, as the log says when the time is over.
func TestGateWaitsForWhatComesBackIntoTheSelection(t *testing.T) {
	w := named("alpha", 1)
	w.Labels = map[string]string{"app": "web"}
	bubble(t, setting{informer: informer.Options[*widget]{LabelSelector: "app"}, have: []*widget{w}}, func(r *rig) {
		core, logs := observer.New(zapcore.WarnLevel)
		g := cachedclient.NewGate(cachedclient.GateOptions{Logger: zap.New(core)})
		r.freeze()
		last := ""
		for _, labels := range []any{nil, map[string]any{"app": "web"}} {
			patch := mustMerge(r.T, map[string]any{"metadata": map[string]any{"labels": labels}})
			written, err := r.widgets.Patch(g.Begin(r.Context(), owner), alpha, patch, patchOptions)
			require.NoError(r, err)
			last = written.ResourceVersion
		}
		require.False(r, ask(g, owner).ready)
		<-time.After(5 * time.Second)
		synctest.Wait()
		require.Equal(r, 1, logs.Len())
		require.Equal(r, last, logs.All()[0].ContextMap()["rv"])
	})
}

// TestOverlayBeforeTheFirstRead writes with a client that has not read yet, and without a gate.
func TestOverlayBeforeTheFirstRead(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		factory := informer.NewFactory(informer.FactoryOptions{})
		inBackground(r.T, factory.Run)
		_, err := cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory}).Get(r.Context(), alpha)
		require.NoError(r, err)
		r.freeze()
		late := cachedclient.NewTyped(r.live, nil, cachedclient.Options{Informers: factory, Overlay: true})
		require.NoError(r, creates(named("beta", 2))(r.Context(), &rig{widgets: late}))
		list, err := late.List(r.Context(), cachedclient.ListOptions{})
		require.NoError(r, err)
		require.Equal(r, []string{"default/alpha=1", "default/beta=2"}, sizes(list.Items))
	})
}
