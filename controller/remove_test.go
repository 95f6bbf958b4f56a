package controller_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/workqueue"
)

func TestRemovedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		kept, gone := c.collection(owners), c.collection(things)
		gone.apply(named("b"))
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		i := gone.running(t)
		never := ctl.Watch(controller.For(i))
		never.Remove()
		<-never.Done()
		ctl.Watch(controller.For(kept.running(t)))
		w := ctl.Watch(controller.For(i))
		stop := start(t, ctl.Run)
		require.Equal(t, []string{"b"}, r.names())
		require.Len(t, ctl.Stats().Sources, 2)

		w.Remove()
		w.Remove()
		gone.apply(named("c"))
		kept.apply(named("a"))
		require.Equal(t, []string{"a"}, r.names())
		<-w.Done()
		require.NoError(t, w.Err())
		require.Len(t, ctl.Stats().Sources, 1)
		require.Empty(t, i.Status().Handlers)

		require.NoError(t, stop())
		w.Remove()
		late := ctl.Watch(controller.For(i))
		<-late.Done()
		require.ErrorIs(t, late.Err(), controller.ErrStopped)
		late.Remove()
	})
}

// TestSourceRemovesItself removes a source in its own map function. No function is called after that.
func TestSourceRemovesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		c.apply(named("a"))
		c.apply(named("b"))
		r, calls := &recorder{}, 0
		ctl := controller.New("test", r, controller.Options{})
		var w *controller.SourceRegistration
		w = ctl.Watch(controller.Map(c.running(t), func(object *thing) []api.Key {
			calls++
			w.Remove()
			return []api.Key{api.KeyOf(object)}
		}))
		start(t, ctl.Run)
		<-w.Done()
		c.apply(named("c"))
		require.Empty(t, r.names())
		require.Equal(t, 1, calls)
		<-ctl.Synced()
	})
}

// TestSourceRemovesItselfInMidNotification removes the source when more of its functions are still to be called.
func TestSourceRemovesItselfInMidNotification(t *testing.T) {
	type source = controller.InformerSource[*thing, api.Key]
	for name, test := range map[string]struct {
		describe func(inf *informer.Informer[*thing], call func() bool) source
		calls    int // until the removal
	}{
		"another predicate": {func(inf *informer.Informer[*thing], call func() bool) source {
			ask := func(api.Change[*thing]) bool { return call() }
			return controller.For(inf).When(ask, ask)
		}, 2},
		"an alternative": {func(inf *informer.Informer[*thing], call func() bool) source {
			ask := func(api.Change[*thing]) bool { return !call() }
			return controller.For(inf).WhenAny(ask, ask)
		}, 2},
		"the map function": {func(inf *informer.Informer[*thing], call func() bool) source {
			ask := func(api.Change[*thing]) bool { return !call() }
			return controller.Map(inf, func(*thing) []api.Key { call(); return nil }).Unless(ask)
		}, 3}, // the map function is called for both states
		"the old state": {func(inf *informer.Informer[*thing], call func() bool) source {
			return controller.Map(inf, func(*thing) []api.Key { call(); return nil })
		}, 2},
	} {
		for removeAt := 1; removeAt <= test.calls; removeAt++ {
			fixture.Bubble(t, fmt.Sprint(name, " ", removeAt), func(t *testing.T) {
				c := new(cluster).collection(things)
				c.apply(named("a"))
				inf := c.running(t)
				var w *controller.SourceRegistration
				calls, armed := 0, false
				r := &recorder{}
				ctl := controller.New("test", r, controller.Options{})
				w = ctl.Watch(test.describe(inf, func() bool {
					if armed {
						if calls++; calls == removeAt {
							w.Remove()
						}
					}
					return true
				}))
				start(t, ctl.Run)
				r.names()
				armed = true
				c.apply(named("a"))
				<-w.Done()
				require.Equal(t, removeAt, calls)
				require.Empty(t, r.names())
			})
		}
	}
}

// TestDoneWaitsForTheCallInFlight removes a source during the call of its function for the initial list.
func TestDoneWaitsForTheCallInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		c.apply(named("a"))
		unblock, r := make(chan struct{}), &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		w := ctl.Watch(controller.Map(c.running(t), func(object *thing) []api.Key {
			<-unblock
			return []api.Key{api.KeyOf(object)}
		}))
		start(t, ctl.Run)
		synctest.Wait()
		w.Remove()
		synctest.Wait()
		select {
		case <-w.Done():
			t.Fatal("the call has not returned")
		default:
		}
		close(unblock)
		<-w.Done()
		require.Empty(t, r.names())
		select {
		case <-w.Synced():
			t.Fatal("the source was removed before it was synced")
		default:
		}
	})
}

// TestRemovedSourceThatDoesNotEndDelaysNoOther removes a source that does not end with its context and is not synced.
func TestRemovedSourceThatDoesNotEndDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{CacheSyncTimeout: time.Minute})
		stuck := ctl.Watch(oddSource(func(context.Context, *controller.Sink[string]) error {
			<-leave
			return nil
		}))
		ctl.Add("a", workqueue.Item{})
		start(t, ctl.Run)
		synctest.Wait()
		stuck.Remove()
		require.NoError(t, ctl.NotSynced())
		pass(2 * time.Minute)
		require.EqualValues(t, 1, ctl.Stats().Succeeded)
		close(leave)
		<-stuck.Done()
	})
}

// TestSinkOfAnEndedSource adds keys when the sink ignores them.
func TestSinkOfAnEndedSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var early, late *controller.Sink[string]
		removed := false
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		ctl.Watch(oddSource(func(_ context.Context, sink *controller.Sink[string]) error {
			early = sink
			return nil
		}))
		ctl.Watch(oddSource(func(ctx context.Context, sink *controller.Sink[string]) error {
			late = sink
			<-ctx.Done()
			linger(time.Second)
			removed = sink.Removed()
			return nil
		}))
		stop := start(t, ctl.Run)
		synctest.Wait()
		require.True(t, early.Removed())
		require.False(t, late.Removed())
		early.Add("a", workqueue.Item{})
		synctest.Wait()
		require.Zero(t, ctl.Stats().Reconciles)
		require.NoError(t, stop())
		require.True(t, removed)
	})
}
