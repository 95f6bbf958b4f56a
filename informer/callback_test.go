package informer_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// useEverything calls every method that may be called from anywhere.
func useEverything(t *testing.T, i *informer.Informer[*widget]) {
	_ = i.Status().String()
	_ = i.Undecodable()
	_ = i.Snapshot().ResourceVersion()
	require.NoError(t, i.WaitFor(t.Context(), "0"))
	r := subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{})
	_ = r.Pending()
	r.Remove()
	informer.AddIndex(i, func(w *widget) []int { return []int{w.Size} })
}

// TestCallbacksMayCallBack calls the informer from each of its callbacks. If the informer held its lock there, the
// bubble would be blocked.
func TestCallbacksMayCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, lw := serve(t, testserver.Options{})
		var called sync.Map
		var i *informer.Informer[*widget]
		use := func(callback string) {
			called.Store(callback, true)
			if callback != "handler" { // which is not called before the first list
				_ = i.Status()
				return
			}
			useEverything(t, i)
		}
		i = informer.New(lw, informer.Options[*widget]{
			Transform: func(w *widget) (*widget, error) {
				use("Transform")
				if w.Size == 13 {
					return nil, errors.New("unlucky")
				}
				return w, nil
			},
			Hooks: reflector.Hooks{
				OnError:       func(error) { use("OnError") },
				OnUndecodable: func(*api.UndecodableError) error { use("OnUndecodable"); return nil },
			},
		})
		trace := func(callback string) {
			use(callback)
			useEverything(t, i)
		}
		i.Trace(informer.Trace{
			Change:   func(informer.TracedChange) { trace("Change") },
			Batch:    func(informer.TracedBatch) { trace("Batch") },
			Delivery: func(informer.Delivery) { trace("Delivery") },
		})
		subscribe(t, i, func(api.Change[*widget]) { use("handler") }, informer.HandlerOptions{})
		running(t, i)
		<-i.Synced()
		must.Get(server.Create(widgets, named("bad", 13)))(t)
		server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
		<-time.After(time.Minute)
		synctest.Wait()
		for _, callback := range []string{"Change", "Batch", "Delivery", "OnError", "Transform", "OnUndecodable", "handler"} {
			_, was := called.Load(callback)
			require.True(t, was, callback)
		}
	})
}

// TestDetectorsMayCallBack lets the detector find a change while batches are handled. It checks all objects after a
// certain number of them.
func TestDetectorsMayCallBack(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("victim", 1)
		found := 0
		var i *informer.Informer[*widget]
		i = informer.New(s, informer.Options[*widget]{Mutations: informer.DetectMutations(func(m cache.Mutation) {
			found++
			require.Equal(t, "victim", m.Key.Name)
			useEverything(t, i)
		})})
		running(t, i)
		<-i.Synced()
		victim, _ := i.Cache().Get(api.Key{Namespace: "default", Name: "victim"})
		victim.Size = 99
		for n := range 5000 {
			s.set("other", n)
		}
		synctest.Wait()
		require.Equal(t, 1, found, "the change must be reported while the informer runs, and once")
	})
}

func TestHandlersMayUseTheInformer(t *testing.T) {
	for name, coalesce := range map[string]bool{"full": false, "coalescing": true} {
		t.Run(name, func(t *testing.T) {
			onSource(t, func(t *testing.T, s *source) {
				s.set("a", 1)
				i := informer.New(s, options(t))
				var nested recorder
				var own, other informer.Registration
				other = subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{Coalesce: coalesce})
				calls := 0
				own = subscribe(t, i, func(n api.Change[*widget]) {
					if calls++; calls > 1 {
						return
					}
					useEverything(t, i)
					require.NoError(t, i.WaitFor(t.Context(), s.set("b", 2)), "the cache must change while a handler waits")
					subscribe(t, i, nested.handle, informer.HandlerOptions{Coalesce: coalesce})
					other.Remove()
					<-other.Done()
					_ = own.Pending()
				}, informer.HandlerOptions{Coalesce: coalesce})
				defer running(t, i)()
				<-own.Synced()
				synctest.Wait()
				require.Equal(t, 2, calls)
				require.ElementsMatch(t, []string{"Added a 1 initial", "Added b 2 initial"}, nested.take())
				require.Len(t, i.Status().Handlers, 2)
			})
		})
	}
}

// TestHandlerThatEndsItsGoroutineIsRemoved has a handler that calls FailNow, or Goexit itself.
func TestHandlerThatEndsItsGoroutineIsRemoved(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		i := informer.New(s, options(t))
		own := subscribe(t, i, func(api.Change[*widget]) { runtime.Goexit() }, informer.HandlerOptions{})
		defer running(t, i)()
		<-own.Done()
		s.set("a", 2)
		synctest.Wait()
		require.Empty(t, i.Status().Handlers, "the removed handler must not be listed")
		require.Zero(t, own.Pending())
	})
}

// TestRemoveInTheLastCallOfTheInitialList removes a handler in the call that completes its initial list.
func TestRemoveInTheLastCallOfTheInitialList(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		i := informer.New(s, options(t))
		var own informer.Registration
		own = subscribe(t, i, func(api.Change[*widget]) { own.Remove() }, informer.HandlerOptions{})
		defer running(t, i)()
		<-own.Done()
		require.False(t, runstate.IsClosed(own.Synced()), "the handler was removed before the end of the list")
	})
}
