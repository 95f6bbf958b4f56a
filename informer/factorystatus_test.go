package informer_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
)

// gated is a source whose watch sends nothing until the gate opens.
type gated struct {
	*source
	resource api.Resource
	gate     chan struct{}
}

func newGated(kind string) *gated {
	r := widgets
	r.Kind, r.Plural = kind, kind
	return &gated{source: newSource(), resource: r, gate: make(chan struct{})}
}

func (g *gated) Collection() api.Collection { return api.Collection{Resource: g.resource} }

func (g *gated) Watch(ctx context.Context, o api.Options[*widget]) iter.Seq2[api.Event[*widget], error] {
	return func(yield func(api.Event[*widget], error) bool) {
		select {
		case <-g.gate:
			g.source.Watch(ctx, o)(yield)
		case <-ctx.Done():
			yield(api.Event[*widget]{}, ctx.Err())
		}
	}
}

func mustShare(t *testing.T, f *factory.Factory, g *gated, o informer.Options[*widget]) *factory.Share[*widget] {
	t.Helper()
	return must.Get(factory.Shared(f, g, o))(t)
}

// TestFactoryIsSyncedWithItsInformers has an informer from before Run, one that joins while the factory waits, and one
// that joins later.
func TestFactoryIsSyncedWithItsInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := factory.New(factory.Options{})
		first, second, third := newGated("first"), newGated("second"), newGated("third")
		mustShare(t, f, first, informer.Options[*widget]{})
		defer runningFactory(t, f)()
		mustShare(t, f, second, informer.Options[*widget]{})
		close(first.gate)
		synctest.Wait()
		require.False(t, runstate.IsClosed(f.Synced()))
		close(second.gate)
		<-f.Synced()
		mustShare(t, f, third, informer.Options[*widget]{})
		synctest.Wait()
		var synced []bool
		for i, s := range f.Status() {
			require.Equal(t, []string{"first", "second", "third"}[i], s.Resource.Plural)
			synced = append(synced, s.Synced)
		}
		require.Equal(t, []bool{true, true, false}, synced)
	})
}

func TestFactoryDoesNotWaitForEndedInformers(t *testing.T) {
	fixture.Bubble(t, "released", func(t *testing.T) {
		f := factory.New(factory.Options{})
		s := mustShare(t, f, newGated("mute"), informer.Options[*widget]{})
		defer runningFactory(t, f)()
		require.False(t, runstate.IsClosed(f.Synced()))
		s.Release()
		<-f.Synced()
		require.Empty(t, f.Status())
	})
	fixture.Bubble(t, "failed", func(t *testing.T) {
		f, broken := factory.New(factory.Options{}), newGated("broken")
		broken.set("a", 1)
		mustShare(t, f, broken, informer.Options[*widget]{
			Transform: func(*widget) (*widget, error) { return nil, errors.New("no") },
			Hooks:     reflector.Hooks{OnUndecodable: reflector.Fail},
		})
		stop := runningFactory(t, f)
		close(broken.gate)
		<-f.Synced()
		require.Error(t, stop())
	})
	fixture.Bubble(t, "the factory itself", func(t *testing.T) {
		f := factory.New(factory.Options{})
		mustShare(t, f, newGated("mute"), informer.Options[*widget]{})
		require.NoError(t, runningFactory(t, f)())
		require.False(t, runstate.IsClosed(f.Synced()))
		require.Len(t, f.Status(), 1, "Status must show the informers after Run, too")
	})
}

// TestObserveInformers observes a factory that has one informer and gets another. Their handlers panic; the entries in
// the log tell them apart.
func TestObserveInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		f, source := factory.New(factory.Options{}), newSource()
		source.set("a", 1)
		join := func(selector string) {
			s := share(t, f, source, informer.Options[*widget]{Selector: api.Selector{Fields: selector}})
			must.Get(s.Subscribe(func(api.Change[*widget]) { panic(selector) }, informer.HandlerOptions{}))(t)
		}
		join("n=1")
		var names []string
		stop := f.ObserveInformers(func(i informer.Any) { names = append(names, i.Status().Name) })
		f.UseLogger(zap.New(core))
		f.UseLogger(zap.NewNop()) // the first logger stays
		join("n=2")
		stop()
		join("n=3")
		require.Equal(t, []string{"widgets.leat.test, fields n=1", "widgets.leat.test, fields n=2"}, names)
		for _, s := range f.Status() {
			require.Equal(t, s.Name+": not running; was it, or its factory, added to the manager?", s.String())
		}
		end := runningFactory(t, f)
		for _, s := range f.Status() {
			require.True(t, s.Running)
		}
		require.NoError(t, end())
		for _, n := range []string{"n=1", "n=2", "n=3"} {
			require.Equal(t, 1, logs.FilterField(zap.String("fields", n)).FilterField(zap.String("panic", n)).Len())
		}
	})
}
