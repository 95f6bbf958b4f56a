package informer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
)

func subscribe(t *testing.T, i interface {
	Subscribe(func(api.Change[*widget]), informer.HandlerOptions) (informer.Registration, error)
}, f func(api.Change[*widget]), o informer.HandlerOptions,
) informer.Registration {
	t.Helper()
	return must.Get(i.Subscribe(f, o))(t)
}

// TestLateHandlerSeesEachChangeOnce lets handlers join while changes arrive. The history of each handler must be legal
// and lead to the state of the cache.
func TestLateHandlerSeesEachChangeOnce(t *testing.T) {
	for _, coalesce := range []bool{false, true} {
		t.Run(fmt.Sprintf("coalesce=%v", coalesce), func(t *testing.T) {
			onSource(t, func(t *testing.T, s *source) {
				i := informer.New(s, options(t))
				defer running(t, i)()
				var believers []*historyChecker
				for n := range 200 {
					s.set(fmt.Sprint("w", n%17), n)
					if n%5 == 0 && n > 20 {
						s.remove(fmt.Sprint("w", (n+3)%17))
					}
					if n%3 == 0 {
						b := newHistoryChecker(t)
						believers = append(believers, b)
						subscribe(t, i, b.handle, informer.HandlerOptions{Coalesce: coalesce})
					}
				}
				synctest.Wait()
				for _, b := range believers {
					b.requireEqual(i)
				}
			})
		})
	}
}

// TestJoinInTheMiddleOfABatch lets handlers join while a batch is applied, which is when index functions are called.
// Each handler must get the batch once, in its replay or as notifications.
func TestJoinInTheMiddleOfABatch(t *testing.T) {
	for _, coalesce := range []bool{false, true} {
		t.Run(fmt.Sprintf("coalesce=%v", coalesce), func(t *testing.T) {
			onSource(t, func(t *testing.T, s *source) {
				i := informer.New(s, options(t))
				applying, last := make(chan struct{}), -1
				informer.AddIndex(i, func(w *widget) []int {
					if w.Size > last { // the function is also called for the old state
						last = w.Size
						applying <- struct{}{}
					}
					for range 100 {
						runtime.Gosched() // goroutines that wait for this should run as far as they can
					}
					return nil
				})
				defer running(t, i)()
				<-i.Synced()
				var believers []*historyChecker
				for n := range 50 {
					b := newHistoryChecker(t)
					believers = append(believers, b)
					s.set("a", n)
					<-applying
					subscribe(t, i, b.handle, informer.HandlerOptions{Coalesce: coalesce})
					synctest.Wait()
				}
				for _, b := range believers {
					b.requireEqual(i)
				}
			})
		})
	}
}

func TestCacheIsAheadOfHandlers(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 0)
		i := informer.New(s, options(t))
		calls := 0
		subscribe(t, i, func(n api.Change[*widget]) {
			calls++
			cached, ok := i.Cache().Get(api.KeyOf(n.Object))
			require.True(t, ok)
			require.GreaterOrEqual(t, cached.Size, n.Object.Size)
		}, informer.HandlerOptions{})
		defer running(t, i)()
		<-i.Synced()
		for n := range 50 {
			s.set("a", n+1)
		}
		synctest.Wait()
		require.Equal(t, 51, calls)
	})
}

func TestStuckHandlerDelaysNothingElse(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		i := informer.New(s, options(t))
		release := make(chan struct{})
		stuck := subscribe(t, i, func(api.Change[*widget]) { <-release }, informer.HandlerOptions{Name: "stuck"})
		var r recorder
		subscribe(t, i, r.handle, informer.HandlerOptions{})
		running(t, i)
		<-i.Synced()
		for n := range 100 {
			s.set("a", n)
			synctest.Wait()
		}
		require.Len(t, r.take(), 100)
		require.Equal(t, 99, stuck.Pending(), "one call is in flight")
		require.True(t, runstate.IsClosed(stuck.Synced()), "the initial list is empty")
		close(release)
		synctest.Wait()
		require.Zero(t, stuck.Pending())
	})
}

// TestSingleChange changes an object after a pause. The goroutine that received the change must store it and call the
// handlers that do not block before it waits for the next change. Other handlers keep their own goroutines.
func TestSingleChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &announcing{source: newSource(), waits: make(chan struct{}), proceed: make(chan struct{})}
		i := informer.New(s, informer.Options[*widget]{})
		quick, slow := newHistoryChecker(t), newHistoryChecker(t)
		coalescing := newHistoryChecker(t)
		release := make(chan struct{})
		subscribe(t, i, quick.handle, informer.HandlerOptions{NonBlocking: true})
		subscribe(t, i, coalescing.handle, informer.HandlerOptions{NonBlocking: true, Coalesce: true})
		subscribe(t, i, func(n api.Change[*widget]) { <-release; slow.handle(n) }, informer.HandlerOptions{})
		running(t, i)
		<-s.waits // for the first change
		key := api.Key{Namespace: "default", Name: "a"}
		for size := range 100 {
			<-time.After(time.Second)
			version := s.set("a", size)
			s.proceed <- struct{}{}
			<-s.waits
			stored, _ := i.Cache().Get(key)
			require.Equal(t, version, stored.ResourceVersion)
			require.Same(t, stored, quick.state[key])
			require.Same(t, stored, coalescing.state[key])
			require.Empty(t, slow.state)
		}
		close(release)
		synctest.Wait()
		require.Equal(t, quick.state, slow.state)
		close(s.proceed)
	})
}

// announcing is a source that stops after each call of OnWait.
type announcing struct {
	*source
	waits, proceed chan struct{}
}

func (s *announcing) Watch(ctx context.Context, o api.Options[*widget]) iter.Seq2[api.Event[*widget], error] {
	onWait := o.OnWait
	o.OnWait = func() {
		onWait()
		select {
		case s.waits <- struct{}{}:
			<-s.proceed
		case <-ctx.Done():
		}
	}
	return s.source.Watch(ctx, o)
}

func TestCoalescingBacklogIsBounded(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		i := informer.New(s, options(t))
		release := make(chan struct{})
		b := newHistoryChecker(t)
		stuck := subscribe(t, i, func(n api.Change[*widget]) { <-release; b.handle(n) }, informer.HandlerOptions{Coalesce: true})
		running(t, i)
		for n := range 10_000 {
			s.set(fmt.Sprint("w", n%10), n)
			if n%100 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		require.LessOrEqual(t, stuck.Pending(), 11)
		close(release)
		synctest.Wait()
		b.requireEqual(i)
	})
}

func TestHandlerPanicIsContained(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		s.set("b", 1)
		logs, seen := observer.New(zap.ErrorLevel)
		o := options(t)
		o.Logger = zap.New(logs)
		i := informer.New(s, o)
		calls := 0
		panicky := subscribe(t, i, func(api.Change[*widget]) {
			calls++
			panic("not again")
		}, informer.HandlerOptions{Name: "panicky"})
		var r recorder
		subscribe(t, i, r.handle, informer.HandlerOptions{})
		defer running(t, i)()
		<-panicky.Synced()
		s.set("a", 2)
		synctest.Wait()
		require.Equal(t, 3, calls, "the handler must get notifications after a panic")
		require.EqualValues(t, 3, panicky.Panics())
		require.Len(t, r.take(), 3)
		require.Equal(t, 3, seen.FilterMessage("handler panicked").Len())
		require.Equal(t, "panicky", seen.All()[0].ContextMap()["handler"])
	})
}

// TestSlowHandlerIsLogged has a handler that is slow while it is far behind. The log must say so once a minute. The
// second warning, after 62 calls, has the smallest number of pending notifications that allows one.
func TestSlowHandlerIsLogged(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		for n := range 1024 + 62 {
			s.set(fmt.Sprint("w", n), n)
		}
		logs, seen := observer.New(zap.WarnLevel)
		o := options(t)
		o.Logger = zap.New(logs)
		i := informer.New(s, o)
		calls := 0
		registration := subscribe(t, i, func(api.Change[*widget]) {
			if calls++; calls < 100 {
				<-time.After(time.Second)
			}
		}, informer.HandlerOptions{Name: "slow"})
		defer running(t, i)()
		<-registration.Synced()
		warnings := seen.FilterMessage("handler is slow").All()
		require.Len(t, warnings, 2)
		for n, pending := range []int64{1024 + 61, 1024} {
			require.Equal(t, map[string]any{
				"resource": "widgets.leat.test", "handler": "slow", "took": time.Second, "count": pending,
			}, warnings[n].ContextMap())
		}
	})
}

func TestRemoveFromWithinAHandler(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		for n := range 10 {
			s.set(fmt.Sprint("w", n), n)
		}
		i := informer.New(s, options(t))
		calls := 0
		var registration informer.Registration
		registration = subscribe(t, i, func(api.Change[*widget]) {
			if calls++; calls == 3 {
				registration.Remove()
				require.False(t, runstate.IsClosed(registration.Done()), "a call is in flight")
			}
		}, informer.HandlerOptions{})
		defer running(t, i)()
		<-registration.Done()
		s.set("w1", 100)
		synctest.Wait()
		require.Equal(t, 3, calls)
		require.Zero(t, registration.Pending())
		registration.Remove() // again has no effect
		require.Empty(t, i.Status().Handlers)
	})
}

func TestRemoveBeforeRun(t *testing.T) {
	i := informer.New(newSource(), options(t))
	registration := subscribe(t, i, func(api.Change[*widget]) { t.Error("called") }, informer.HandlerOptions{})
	registration.Remove()
	<-registration.Done()
}

func TestLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informer.New(newSource(), options(t))
		stop := running(t, i)
		<-i.Synced()
		require.ErrorIs(t, i.Run(t.Context()), informer.ErrRunning)
		stop()
		require.True(t, runstate.IsClosed(i.Stopped()))
		require.ErrorIs(t, i.Run(t.Context()), informer.ErrRunning)
		require.ErrorIs(t, must.Err(i.AddEventHandler(informer.HandlerFuncs[*widget]{}, informer.HandlerOptions{})), informer.ErrStopped)
		require.ErrorIs(t, i.WaitFor(t.Context(), "99"), informer.ErrStopped)
		require.NoError(t, i.WaitFor(t.Context(), "0"), "a reached version must stay reached")
	})
}

func TestNoCallAfterRun(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		for n := range 100 {
			s.set(fmt.Sprint("w", n), n)
		}
		i := informer.New(s, options(t))
		inFlight, ended := make(chan struct{}), false
		calls := 0
		subscribe(t, i, func(api.Change[*widget]) {
			require.False(t, ended)
			if calls++; calls == 1 {
				close(inFlight)
				<-time.After(time.Second)
			}
		}, informer.HandlerOptions{})
		stop := running(t, i)
		<-inFlight
		started := time.Now()
		stop()
		ended = true
		require.Equal(t, time.Second, time.Since(started), "Run waits only for the call in flight")
		require.Equal(t, 1, calls)
	})
}

func TestWaitFor(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		i := informer.New(s, options(t))
		anything := make(chan error, 1)
		go func() { anything <- i.WaitFor(t.Context(), "0") }()
		synctest.Wait()
		require.Empty(t, anything, "the first list is not there yet")
		defer running(t, i)()
		require.NoError(t, <-anything)
		require.NoError(t, i.WaitFor(t.Context(), "1"))
		waited := make(chan error, 2)
		for range 2 {
			go func() { waited <- i.WaitFor(t.Context(), "3") }()
		}
		synctest.Wait()
		s.set("a", 2)
		synctest.Wait()
		require.Empty(t, waited)
		s.bookmark()
		require.NoError(t, <-waited)
		require.NoError(t, <-waited)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, i.WaitFor(ctx, "1000"), context.DeadlineExceeded)
	})
}

func TestResyncIsPerHandler(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		o := options(t)
		o.ResyncPeriod = 10 * time.Second
		i := informer.New(s, o)
		var ten, thirty, never, late recorder
		subscribe(t, i, ten.handle, informer.HandlerOptions{})
		subscribe(t, i, thirty.handle, informer.HandlerOptions{ResyncPeriod: 30 * time.Second})
		subscribe(t, i, never.handle, informer.HandlerOptions{ResyncPeriod: -1})
		defer running(t, i)()
		<-i.Synced()
		<-time.After(5 * time.Second)
		subscribe(t, i, late.handle, informer.HandlerOptions{ResyncPeriod: time.Second})
		<-time.After(61 * time.Second)
		synctest.Wait()
		count := func(r *recorder) int {
			lines := r.take()
			require.Equal(t, "Added a 1 initial", lines[0])
			for _, line := range lines[1:] {
				require.Equal(t, "Updated a 1→1 resync", line)
			}
			return len(lines) - 1
		}
		require.Equal(t, 6, count(&ten))
		require.Equal(t, 2, count(&thirty))
		require.Equal(t, 0, count(&never))
		require.Equal(t, 61, count(&late))
	})
}

func TestFirstHandlerOfARunningInformerGetsResyncs(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		o := options(t)
		o.ResyncPeriod = 10 * time.Second
		i := informer.New(s, o)
		defer running(t, i)()
		<-i.Synced()
		var late recorder
		subscribe(t, i, late.handle, informer.HandlerOptions{})
		<-time.After(21 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"Added a 1 initial", "Updated a 1→1 resync", "Updated a 1→1 resync"}, late.take())
	})
}

func TestTransformRunsOnceForEachState(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		s.set("b", 2)
		s.set("bad", 13)
		o := options(t)
		calls := map[int]int{}
		o.Transform = func(w *widget) (*widget, error) {
			calls[w.Size]++
			if w.Size == 13 {
				return nil, errors.New("unlucky")
			}
			copied := *w
			copied.Size = -w.Size
			return &copied, nil
		}
		i := informer.New(s, o)
		var r recorder
		subscribe(t, i, r.handle, informer.HandlerOptions{})
		defer running(t, i)()
		<-i.Synced()
		s.set("a", 3)
		synctest.Wait()
		s.set("a", 13)
		synctest.Wait()
		require.ElementsMatch(t, []string{"Added a -1 initial", "Added b -2 initial", "Updated a -1→-3"}, r.take())
		require.Equal(t, map[int]int{1: 1, 2: 1, 3: 1, 13: 2}, calls)
		a, _ := i.Cache().Get(api.Key{Namespace: "default", Name: "a"})
		require.Equal(t, -3, a.Size, "the last good state stays")
		require.Len(t, i.Undecodable(), 2)
		require.Equal(t, 2, i.Status().Undecodable)
		s.set("a", 4)
		s.set("bad", 5)
		synctest.Wait()
		require.Empty(t, i.Undecodable())
	})
}

func TestFailEndsRun(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		o := options(t)
		o.Transform = func(*widget) (*widget, error) { return nil, errors.New("no") }
		o.OnUndecodable = reflector.Fail
		err := informer.New(s, o).Run(t.Context())
		var undecodable *api.UndecodableError
		require.ErrorAs(t, err, &undecodable)
		require.Equal(t, "a", undecodable.Key.Name)
	})
}

func TestMutationOfACachedObjectIsFound(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		var found []cache.Mutation
		i := informer.New(s, informer.Options[*widget]{Mutations: informer.DetectMutations(func(m cache.Mutation) { found = append(found, m) })})
		stop := running(t, i)
		<-i.Synced()
		a, _ := i.Cache().Get(api.Key{Namespace: "default", Name: "a"})
		a.Size = 99
		stop()
		require.Len(t, found, 1)
		require.Equal(t, "a", found[0].Key.Name)
		require.Contains(t, found[0].Diff, "99")
	})
}

// TestAHandlerCostsNothingPerObject checks that neither a join nor the fan-out allocates for each object and handler.
func TestAHandlerCostsNothingPerObject(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		for n := range 2000 {
			s.set(fmt.Sprint("w", n), n)
		}
		i := informer.New(s, options(t))
		defer running(t, i)()
		<-i.Synced()
		release := make(chan struct{})
		stuck := func(api.Change[*widget]) { <-release }
		allocated := testing.AllocsPerRun(1, func() {
			for range 50 {
				subscribe(t, i, stuck, informer.HandlerOptions{Name: "stuck"})
			}
		})
		require.Less(t, allocated, 50*60.0)
		close(release)
	})
}

func TestAddEventHandlerNamesTheHandler(t *testing.T) {
	i := informer.New(newSource(), options(t))
	registration, err := i.AddEventHandler(informer.HandlerFuncs[*widget]{}, informer.HandlerOptions{})
	require.NoError(t, err)
	require.Contains(t, registration.Name(), "HandlerFuncs")
	registration, err = i.AddEventHandler(informer.HandlerFuncs[*widget]{}, informer.HandlerOptions{Name: "mine"})
	require.NoError(t, err)
	require.Equal(t, "mine", registration.Name())
	require.Contains(t, subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{}).Name(), "TestAddEventHandlerNamesTheHandler")
	require.Equal(t, "mine", subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{Name: "mine"}).Name())
}

func TestNilHandlersPanic(t *testing.T) {
	i := informer.New(newSource(), options(t))
	require.PanicsWithValue(t, "informer: AddEventHandler needs a handler", func() {
		_, _ = i.AddEventHandler(nil, informer.HandlerOptions{})
	})
	require.PanicsWithValue(t, "informer: Subscribe needs a function", func() {
		_, _ = i.Subscribe(nil, informer.HandlerOptions{})
	})
}

func TestHandlersJoinAndLeaveConcurrently(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		i := informer.New(s, options(t))
		running(t, i)
		finished := make(chan struct{})
		for worker := range 8 {
			go func() {
				defer func() { finished <- struct{}{} }()
				for n := range 50 {
					b := newHistoryChecker(t)
					r, err := i.Subscribe(b.handle, informer.HandlerOptions{Coalesce: n%2 == 0, NonBlocking: n%5 < 2})
					if err != nil {
						return
					}
					s.set(fmt.Sprint("w", worker), n)
					_ = i.Status()
					_ = r.Pending()
					if n%3 != 0 {
						r.Remove()
						<-r.Done()
					}
				}
			}()
		}
		for range 8 {
			<-finished
		}
		synctest.Wait()
		require.Len(t, i.Status().Handlers, 8*17)
	})
}

// historyChecker is a handler that checks that its notifications are legal, and applies them to state.
type historyChecker struct {
	t     *testing.T
	state map[api.Key]*widget
}

func newHistoryChecker(t *testing.T) *historyChecker {
	return &historyChecker{t, map[api.Key]*widget{}}
}

func (c *historyChecker) handle(n api.Change[*widget]) {
	key := api.KeyOf(n.Object)
	known := c.state[key]
	switch n.Type {
	case api.Added:
		require.Nil(c.t, known, "an Added of an object that the handler has")
		c.state[key] = n.Object
	case api.Updated:
		require.Same(c.t, known, n.Old, "Old must be the state that the handler got last")
		require.Equal(c.t, known.UID, n.Object.UID)
		c.state[key] = n.Object
	case api.Deleted:
		require.NotNil(c.t, known, "a Deleted without an Added")
		require.Equal(c.t, known.UID, n.Object.UID)
		delete(c.state, key)
	}
}

// requireEqual compares state with the cache. The informer must be idle.
func (c *historyChecker) requireEqual(i *informer.Informer[*widget]) {
	c.t.Helper()
	require.Len(c.t, c.state, i.Cache().Len())
	for key, object := range i.Cache().All() {
		require.Same(c.t, object, c.state[key])
	}
	require.True(c.t, slices.ContainsFunc(i.Status().Handlers, func(h informer.HandlerStatus) bool { return h.Synced }))
}
