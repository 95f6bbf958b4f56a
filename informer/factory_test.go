package informer_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
)

// runningFactory runs a factory in the background of a bubble. stop ends it and returns its error.
func runningFactory(t *testing.T, f *factory.Factory) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	synctest.Wait()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

func share(t *testing.T, f *factory.Factory, s *source, o informer.Options[*widget]) *factory.Share[*widget] {
	t.Helper()
	return must.Get(factory.Shared(f, s, o))(t)
}

func TestFactorySharesOneInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := factory.New(factory.Options{}), newSource()
		first := share(t, f, s, informer.Options[*widget]{})
		defer runningFactory(t, f)()
		second := share(t, f, s, informer.Options[*widget]{})
		require.Same(t, first.Informer, second.Informer)
		<-second.Synced()
		for _, other := range []*factory.Share[*widget]{
			share(t, f, newSource(), informer.Options[*widget]{}),
			share(t, f, s, informer.Options[*widget]{Selector: api.Selector{Labels: "a=b"}}),
			share(t, f, s, informer.Options[*widget]{Selector: api.Selector{Fields: "a=b"}}),
			share(t, f, s, informer.Options[*widget]{Memory: reflector.Memory{KeepManagedFields: true}}),
		} {
			require.NotSame(t, first.Informer, other.Informer)
			<-other.Synced()
		}
	})
}

func TestFactoryStopsUnusedInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := factory.New(factory.Options{}), newSource()
		stop := runningFactory(t, f)
		first, second := share(t, f, s, informer.Options[*widget]{}), share(t, f, s, informer.Options[*widget]{})
		var kept, gone recorder
		subscribe(t, first, gone.handle, informer.HandlerOptions{})
		subscribe(t, first, gone.handle, informer.HandlerOptions{})
		subscribe(t, second, kept.handle, informer.HandlerOptions{})
		<-first.Synced()
		first.Release()
		first.Release() // again has no effect
		<-first.Done()
		s.set("a", 1)
		synctest.Wait()
		require.Empty(t, gone.take(), "the handlers of the share must be removed")
		require.Equal(t, []string{"Added a 1"}, kept.take(), "the handlers of other shares must stay")
		_, err := first.Subscribe(gone.handle, informer.HandlerOptions{})
		require.ErrorIs(t, err, informer.ErrStopped)
		second.Release()
		<-second.Done()
		require.True(t, runstate.IsClosed(second.Stopped()))
		third := share(t, f, s, informer.Options[*widget]{})
		require.NotSame(t, second.Informer, third.Informer, "the next user gets a new informer")
		<-third.Synced()
		require.NoError(t, stop())
		require.True(t, runstate.IsClosed(third.Stopped()))
		_, err = third.Subscribe(kept.handle, informer.HandlerOptions{})
		require.ErrorIs(t, err, informer.ErrStopped)
		third.Release()
		<-third.Done()
		_, err = factory.Shared(f, s, informer.Options[*widget]{})
		require.ErrorIs(t, err, informer.ErrStopped)
		require.ErrorIs(t, f.Run(t.Context()), informer.ErrRunning)
	})
}

func TestHandlerMayReleaseItsOwnShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := factory.New(factory.Options{}), newSource()
		s.set("a", 1)
		defer runningFactory(t, f)()
		only := share(t, f, s, informer.Options[*widget]{})
		subscribe(t, only, func(api.Change[*widget]) {
			only.Release()
			require.False(t, runstate.IsClosed(only.Done()), "this call is in flight")
		}, informer.HandlerOptions{})
		<-only.Done()
	})
}

func TestReleaseBeforeAndAfterTheFactoryRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := factory.New(factory.Options{}), newSource()
		early := share(t, f, s, informer.Options[*widget]{})
		subscribe(t, early, func(api.Change[*widget]) { t.Error("called") }, informer.HandlerOptions{})
		early.Release()
		<-early.Done()
		stop := runningFactory(t, f)
		late := share(t, f, s, informer.Options[*widget]{})
		require.NotSame(t, early.Informer, late.Informer)
		require.NoError(t, stop())
		late.Release()
		<-late.Done()
	})
}

// TestReleaseWhileTheFactoryEnds blocks a handler while the factory ends, and then releases its share. A share that is
// requested meanwhile would have an informer that never runs.
func TestReleaseWhileTheFactoryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := factory.New(factory.Options{}), newSource()
		s.set("a", 1)
		stop := runningFactory(t, f)
		shared := share(t, f, s, informer.Options[*widget]{})
		inFlight, release := make(chan struct{}), make(chan struct{})
		subscribe(t, shared, func(api.Change[*widget]) {
			close(inFlight)
			<-release
		}, informer.HandlerOptions{})
		<-inFlight
		ended := make(chan error)
		go func() { ended <- stop() }()
		synctest.Wait()
		require.ErrorIs(t, must.Err(factory.Shared(f, newSource(), informer.Options[*widget]{})), informer.ErrStopped)
		shared.Release()
		require.False(t, runstate.IsClosed(shared.Done()))
		close(release)
		<-shared.Done()
		require.NoError(t, <-ended)
	})
}

// TestReleaseDoesNotWaitForOtherInformers releases the share of an ended informer in the handler of another informer.
// This handler keeps the factory from ending. Done must be closed anyway.
func TestReleaseDoesNotWaitForOtherInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := factory.New(factory.Options{}), newSource()
		s.set("a", 1)
		stop := runningFactory(t, f)
		first, second := share(t, f, newSource(), informer.Options[*widget]{}), share(t, f, s, informer.Options[*widget]{})
		again := share(t, f, s, informer.Options[*widget]{})
		inFlight, release := make(chan struct{}), make(chan struct{})
		subscribe(t, second, func(api.Change[*widget]) {
			close(inFlight)
			<-release
			first.Release()
			<-first.Done()
			second.Release()
			again.Release()
		}, informer.HandlerOptions{})
		<-inFlight
		ended := make(chan error)
		go func() { ended <- stop() }()
		synctest.Wait()
		close(release)
		require.NoError(t, <-ended)
		<-second.Done()
		<-again.Done()
	})
}

// TestReleaseWaitsForTheCallInFlight releases a share that is not the last one.
func TestReleaseWaitsForTheCallInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := factory.New(factory.Options{}), newSource()
		s.set("a", 1)
		defer runningFactory(t, f)()
		share(t, f, s, informer.Options[*widget]{})
		shared := share(t, f, s, informer.Options[*widget]{})
		inFlight, release := make(chan struct{}), make(chan struct{})
		subscribe(t, shared, func(api.Change[*widget]) {
			close(inFlight)
			<-release
		}, informer.HandlerOptions{})
		<-inFlight
		shared.Release()
		synctest.Wait()
		require.False(t, runstate.IsClosed(shared.Done()))
		close(release)
		<-shared.Done()
	})
}

// TestFailedInformerIsNotShared shares an informer that has failed, while a handler keeps its Run from returning.
func TestFailedInformerIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, seen := observer.New(zap.ErrorLevel)
		f, s := factory.New(factory.Options{Logger: zap.New(logs)}), newSource()
		s.set("a", 1)
		stop := runningFactory(t, f)
		o := informer.Options[*widget]{
			Transform: func(w *widget) (*widget, error) {
				if w.Size == 13 {
					return nil, errors.New("unlucky")
				}
				return w, nil
			},
			Hooks: reflector.Hooks{OnUndecodable: reflector.Fail},
		}
		failing := share(t, f, s, o)
		inFlight, release := make(chan struct{}), make(chan struct{})
		subscribe(t, failing, func(api.Change[*widget]) {
			close(inFlight)
			<-release
			panic("late")
		}, informer.HandlerOptions{})
		<-inFlight
		s.set("a", 13)
		<-failing.Stopped()
		s.set("a", 2)
		again := share(t, f, s, o)
		require.NotSame(t, failing.Informer, again.Informer)
		<-again.Synced()
		close(release)
		failing.Release()
		<-failing.Done()
		require.False(t, runstate.IsClosed(again.Stopped()))
		require.ErrorContains(t, stop(), "unlucky")
		require.Equal(t, 1, seen.FilterMessage("handler panicked").Len(), "informers must use the factory's logger")
	})
}

// TestSharesAreCountedBeforeTheFactoryRuns releases one of two shares before Run. The informer must run.
func TestSharesAreCountedBeforeTheFactoryRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := factory.New(factory.Options{}), newSource()
		first, second := share(t, f, s, informer.Options[*widget]{}), share(t, f, s, informer.Options[*widget]{})
		first.Release()
		<-first.Done()
		defer runningFactory(t, f)()
		<-second.Synced()
	})
}

// identified is a source of the collection with its name. Two values with one name are sources of one collection.
type identified struct {
	*source
	name string
}

func (i *identified) Identity() any { return i.name }

func TestSourcesAreComparedByIdentity(t *testing.T) {
	f, s := factory.New(factory.Options{}), newSource()
	informerOf := func(name string) *informer.Informer[*widget] {
		shared := must.Get(factory.Shared(f, &identified{s, name}, informer.Options[*widget]{}))(t)
		return shared.Informer
	}
	first := informerOf("a")
	require.Same(t, first, informerOf("a"))
	require.NotSame(t, first, informerOf("b"))
}

// TestInformerKeepsItsOwnLogger has a factory with a logger, and informers with and without one.
func TestInformerKeepsItsOwnLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, ofFactory := observer.New(zap.ErrorLevel)
		own, ofInformer := observer.New(zap.ErrorLevel)
		f := factory.New(factory.Options{Logger: zap.New(core)})
		for _, o := range []informer.Options[*widget]{{}, {Logger: zap.New(own)}} {
			s := newSource()
			s.set("a", 1)
			subscribe(t, share(t, f, s, o), func(api.Change[*widget]) { panic("once") }, informer.HandlerOptions{})
		}
		stop := runningFactory(t, f)
		require.Equal(t, 1, ofFactory.Len())
		require.Equal(t, 1, ofInformer.Len())
		require.NoError(t, stop())
	})
}

func TestSourceMustBeComparable(t *testing.T) {
	f := factory.New(factory.Options{})
	require.PanicsWithValue(t,
		"factory: Shared compares sources, and a source of type informer_test.incomparable cannot be compared; make it an api.Identified",
		func() {
			_, _ = factory.Shared(f, incomparable{source: newSource()}, informer.Options[*widget]{})
		})
}

type incomparable struct {
	*source
	_ []int
}

func TestConflictingOptionsAreATypedError(t *testing.T) {
	f, s := factory.New(factory.Options{}), newSource()
	share(t, f, s, informer.Options[*widget]{Transform: func(w *widget) (*widget, error) { return w, nil }})
	_, err := factory.Shared(f, s, informer.Options[*widget]{})
	var conflict *factory.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "Transform", conflict.Option)
	require.EqualError(t, err, "factory: widgets.leat.test is already shared with a different Transform")

	other := newSource()
	o := informer.Options[*widget]{Gate: openGate(func() {})} // a function cannot be compared
	share(t, f, other, o)
	_, err = factory.Shared(f, other, o)
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, "Gate", conflict.Option)
}

// openGate is a gate that is a function.
type openGate func()

func (g openGate) Enter(context.Context) (leave func()) { return g }

func TestFailedInformerAffectsNoOtherAndIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, bad, good := factory.New(factory.Options{}), newSource(), newSource()
		bad.set("a", 1)
		stop := runningFactory(t, f)
		failing := share(t, f, bad, informer.Options[*widget]{
			Transform: func(*widget) (*widget, error) { return nil, errors.New("no such thing") },
			Hooks:     reflector.Hooks{OnUndecodable: reflector.Fail},
		})
		healthy := share(t, f, good, informer.Options[*widget]{})
		<-failing.Stopped()
		again := share(t, f, bad, informer.Options[*widget]{})
		<-again.Synced()
		<-healthy.Synced()
		require.Same(t, healthy.Informer, share(t, f, good, informer.Options[*widget]{}).Informer)
		failing.Release()
		<-failing.Done()
		require.False(t, runstate.IsClosed(again.Stopped()), "the old share must not belong to the new informer")
		require.ErrorContains(t, stop(), "no such thing")
	})
}
