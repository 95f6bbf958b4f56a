package controller_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/workqueue"
)

// feed is a source whose keys come from the test.
type feed struct {
	items  chan feedItem
	synced chan struct{} // the source calls Synced when it is closed
}

type feedItem struct {
	key  string
	item workqueue.Item
}

// newFeed returns a feed that is synced at once.
func newFeed() *feed {
	f := &feed{items: make(chan feedItem), synced: make(chan struct{})}
	close(f.synced)
	return f
}

func (f *feed) String() string   { return "feed" }
func (f *feed) NotSynced() error { return nil }

func (f *feed) add(key string, item workqueue.Item) { f.items <- feedItem{key, item} }

func (f *feed) Run(ctx context.Context, sink *controller.Sink[string]) error {
	synced := f.synced
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-synced:
			sink.Synced()
			synced = nil
		case i := <-f.items:
			sink.Add(i.key, i.item)
		}
	}
}

// traced returns c after its reports go to f.
func traced[K comparable](c *controller.Controller[K], f func(controller.Report)) *controller.Controller[K] {
	c.Trace(controller.Trace{Reconciled: func(r controller.Reconciled) { f(r.Report()) }})
	return c
}

// reports collects reports.
type reports struct {
	mu  sync.Mutex // guards the field below
	all []controller.Report
}

func (r *reports) add(report controller.Report) {
	report.Causes = slices.Clone(report.Causes)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, report)
}

func (r *reports) take() []controller.Report {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

type reconcileFunc = controller.Func[string]

func succeed(context.Context, string) (controller.Result, error) { return controller.Result{}, nil }

func TestNoReconcileBeforeEverySourceIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		first, second := c.collection(owners), c.collection(things)
		first.apply(named("a"))
		second.apply(named("b"))
		second.apply(named("c"))
		unblock, r := make(chan struct{}), &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.For(first.running(t)))
		slow := ctl.Watch(controller.Map(second.running(t), func(object *thing) []api.Key {
			<-unblock
			return []api.Key{api.KeyOf(object)}
		}))
		start(t, ctl.Run)

		pass(time.Minute)
		require.Empty(t, r.names(), "the informers are synced, but a handler is not")
		require.Equal(t, 1, ctl.Stats().Queue.Depth)
		require.False(t, ctl.Stats().Synced)

		unblock <- struct{}{}
		require.Empty(t, r.names(), "one object of two")

		close(unblock)
		require.ElementsMatch(t, []string{"a", "b", "c"}, r.names())
		<-slow.Synced()
		<-ctl.Synced()
		require.True(t, ctl.Stats().Synced)
	})
}

func TestEmptyListIsSyncedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.For(c.running(t)))
		start(t, ctl.Run)
		<-ctl.Synced()
		require.Empty(t, r.names())
		c.apply(named("a"))
		require.Equal(t, []string{"a"}, r.names())
	})
}

func TestControllerWithoutSourcesStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		start(t, ctl.Run)
		<-ctl.Synced()
		require.Zero(t, ctl.Stats().Reconciles)
		require.Equal(t, "test", ctl.Name())
	})
}

// TestKeyIsNeverReconciledTwiceAtOnce adds few keys very often, for many workers.
func TestKeyIsNeverReconciledTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		busy, calls, most := map[string]bool{}, map[string]int{}, 0
		r := reconcileFunc(func(_ context.Context, key string) (controller.Result, error) {
			mu.Lock()
			require.False(t, busy[key])
			busy[key] = true
			calls[key]++
			most = max(most, len(busy))
			mu.Unlock()
			linger(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			delete(busy, key)
			if calls[key]%7 == 0 {
				return controller.Result{}, errors.New("now and then")
			}
			return controller.Result{}, nil
		})
		ctl := controller.New("test", r, controller.Options{Workers: 4})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		for i := range 1000 {
			f.add(fmt.Sprint(i%5), workqueue.Item{})
			if i%10 == 0 {
				pass(100 * time.Microsecond)
			}
		}
		pass(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, calls, 5)
		require.Equal(t, 4, most, "as many as there are workers")
		total := 0
		for _, n := range calls {
			total += n
		}
		require.Less(t, total, 200, "adds coalesce")
		require.EqualValues(t, total, ctl.Stats().Reconciles)
	})
}

func TestKeyAddedInMidReconcileIsReconciledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, leave := make(chan string), make(chan struct{})
		ctl := controller.New("test", reconcileFunc(func(_ context.Context, key string) (controller.Result, error) {
			entered <- key
			<-leave
			return controller.Result{}, nil
		}), controller.Options{Workers: 2})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		require.Equal(t, "a", <-entered)
		f.add("a", workqueue.Item{})
		f.add("a", workqueue.Item{})
		synctest.Wait()
		require.Equal(t, 1, ctl.Stats().ActiveWorkers)
		leave <- struct{}{}
		require.Equal(t, "a", <-entered, "once more, not twice")
		leave <- struct{}{}
		synctest.Wait()
		require.EqualValues(t, 2, ctl.Stats().Reconciles)
		require.Zero(t, ctl.Stats().ActiveWorkers)
	})
}

func TestReconcilePanicIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		var seen reports
		calls := 0
		ctl := traced(controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			calls++
			switch calls {
			case 1:
				panic("a bug")
			case 2:
				panic(controller.TerminalError(errors.New("a bug, even so")))
			case 3:
				runtime.Goexit()
			}
			return controller.Result{}, nil
		}), controller.Options{Logger: zap.New(core)}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		pass(time.Hour)

		all := seen.take()
		require.Len(t, all, 4)
		var p *api.PanicError
		require.ErrorAs(t, all[0].Err, &p)
		require.Equal(t, "a bug", p.Value)
		require.EqualError(t, p, "panic: a bug [recovered]")
		require.Equal(t, 5*time.Millisecond, all[1].Started.Sub(all[0].Started), "retried like any error")
		require.Equal(t, controller.Failed, all[1].Outcome)
		require.ErrorContains(t, all[2].Err, "Goexit")
		require.Equal(t, controller.Succeeded, all[3].Outcome)

		s := ctl.Stats()
		require.EqualValues(t, 2, s.Panics)
		require.EqualValues(t, 3, s.Failed)
		failed := logs.FilterMessage("reconcile failed").All()
		require.Len(t, failed, 3, "each is logged once")
		require.Contains(t, failed[0].ContextMap()["stack"], "TestReconcilePanicIsContained")
	})
}

func TestReconcileTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		calls := 0
		var kept context.Context
		ctl := traced(controller.New("test", reconcileFunc(func(ctx context.Context, _ string) (controller.Result, error) {
			kept = ctx
			if calls++; calls == 1 {
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), controller.ErrReconcileTimeout)
				return controller.Result{}, ctx.Err()
			}
			return controller.Result{}, nil
		}), controller.Options{ReconcileTimeout: time.Second}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		pass(10 * time.Millisecond)
		require.NoError(t, kept.Err())
		pass(time.Second)
		require.ErrorIs(t, kept.Err(), context.Canceled, "the context ended with the reconcile, not with the timeout")
		all := seen.take()
		require.Len(t, all, 2)
		require.True(t, all[0].TimedOut)
		require.Equal(t, controller.Failed, all[0].Outcome)
		require.Equal(t, time.Second, all[0].Took)
		require.False(t, all[1].TimedOut)
		require.EqualValues(t, 1, ctl.Stats().Timeouts)
		why := ctl.Why("a")
		require.False(t, why[0].TimedOut)
		require.True(t, why[1].TimedOut)
	})
}

func TestFailureIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		var id string
		ctl := controller.New("test", reconcileFunc(func(ctx context.Context, _ string) (controller.Result, error) {
			linger(3 * time.Second)
			id = controller.ReconcileID(ctx)
			controller.Logger(ctx).Info("from the reconciler")
			return controller.Result{RequeueAfter: time.Minute}, controller.TerminalError(errors.New("no luck"))
		}), controller.Options{Logger: zap.New(core)})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{Cause: workqueue.Cause{Source: "pods", Event: "update", Object: "default/web-0", Version: "47"}})
		pass(time.Minute)
		entries := logs.All()
		require.Len(t, entries, 3) // workers started, the reconciler's own entry, the failure
		require.Equal(t, map[string]any{"controller": "test", "key": "a", "reconcileID": id}, entries[1].ContextMap())
		require.Equal(t, map[string]any{
			"controller": "test", "key": "a", "reconcileID": id, "attempt": int64(1), "took": 3 * time.Second,
			"err": "terminal error: no luck", "ignored_after": time.Minute,
			"causes": []any{"pods update default/web-0 at version 47"},
		}, entries[2].ContextMap())
	})
}

func TestContextOfReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids, saw := map[string]bool{}, [][]workqueue.Cause{}
		var kept context.Context
		ctl := controller.New("test", reconcileFunc(func(ctx context.Context, _ string) (controller.Result, error) {
			kept = ctx
			ids[controller.ReconcileID(ctx)] = true
			saw = append(saw, controller.Causes(ctx))
			if len(saw) == 1 {
				return controller.Result{}, errors.New("no luck")
			}
			if len(saw) == 2 {
				return controller.Result{RequeueAfter: time.Hour}, nil
			}
			return controller.Result{}, nil
		}), controller.Options{})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		began := time.Now()
		cause := workqueue.Cause{Source: "pods", Event: "add", Object: "default/web-0", Version: "3", At: began}
		f.add("a", workqueue.Item{Cause: cause})
		pass(24 * time.Hour)
		require.Equal(t, [][]workqueue.Cause{
			{cause},
			{{Source: "test", Event: "retry", Object: "a", At: began}},
			{{Source: "test", Event: "requeue after", Object: "a", At: began.Add(5 * time.Millisecond)}},
		}, saw)
		require.Len(t, ids, 3)
		for id := range ids {
			require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
		}
		require.Nil(t, controller.Causes(kept), "the causes belong to the queue again")

		outside := context.Background()
		require.Empty(t, controller.ReconcileID(outside))
		require.Nil(t, controller.Causes(outside))
		require.Zero(t, controller.Attempt(outside))
		require.False(t, controller.Logger(outside).Core().Enabled(zapcore.ErrorLevel))
	})
}

func TestReportSaysWhereTimeWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		ctl := traced(controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			linger(10 * time.Second)
			return controller.Result{RequeueAfter: time.Hour}, nil
		}), controller.Options{}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		began := time.Now()
		f.add("a", workqueue.Item{})
		synctest.Wait()
		f.add("b", workqueue.Item{After: time.Second})
		pass(time.Minute)
		all := seen.take()
		require.Len(t, all, 2)
		b := all[1]
		require.Equal(t, "test", b.Controller)
		require.Equal(t, "b", b.Key)
		require.Equal(t, began.Add(time.Second), b.Ready)
		require.Equal(t, began.Add(10*time.Second), b.Started)
		require.Equal(t, 10*time.Second, b.Took)
		require.WithinDuration(t, began, b.Added, 0)
		require.Equal(t, time.Hour, b.RequeueAfter)
	})
}

// TestRunEndsInEveryState cancels at each stage of a controller's life. The bubble fails if a goroutine is left.
func TestRunEndsInEveryState(t *testing.T) {
	blocked := reconcileFunc(func(ctx context.Context, _ string) (controller.Result, error) {
		<-ctx.Done()
		linger(time.Second)
		return controller.Result{}, fmt.Errorf("broken off: %w", ctx.Err())
	})
	failing := reconcileFunc(func(context.Context, string) (controller.Result, error) {
		return controller.Result{}, errors.New("no luck")
	})
	for name, test := range map[string]struct {
		reconciler reconcileFunc
		prepare    func(f *feed)
		ends       time.Duration // how long Run takes to return
		outcome    controller.Outcome
	}{
		"nothing to do":       {reconciler: succeed, prepare: func(*feed) {}},
		"waiting to be tried": {reconciler: failing, prepare: func(f *feed) { f.add("a", workqueue.Item{}) }, outcome: controller.Failed},
		"delayed":             {reconciler: succeed, prepare: func(f *feed) { f.add("a", workqueue.Item{After: time.Hour}) }},
		"in mid-reconcile":    {reconciler: blocked, prepare: func(f *feed) { f.add("a", workqueue.Item{}); f.add("b", workqueue.Item{}) }, ends: time.Second, outcome: controller.Cancelled},
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			var seen reports
			core, logs := observer.New(zapcore.ErrorLevel)
			ctl := traced(controller.New("test", test.reconciler, controller.Options{
				Queue: workqueue.Options{Backoff: workqueue.Backoff{Base: time.Hour}}, Logger: zap.New(core),
			}), seen.add)
			f := newFeed()
			w := ctl.Watch(f)
			stop := start(t, ctl.Run)
			<-ctl.Synced()
			test.prepare(f)
			synctest.Wait()

			cancelled := time.Now()
			require.NoError(t, stop())
			require.Equal(t, test.ends, time.Since(cancelled))
			<-w.Done()
			require.NoError(t, w.Err())
			require.Zero(t, ctl.Stats().Queue.Delayed)
			all := seen.take()
			if test.outcome == "" {
				require.Empty(t, all)
				return
			}
			require.Len(t, all, 1, "the workers take no more keys")
			require.Equal(t, test.outcome, all[0].Outcome)
			if test.outcome == controller.Cancelled {
				require.Zero(t, logs.Len(), "a cancelled reconcile is not a failure")
			}
		})
	}
	fixture.Bubble(t, "before sources are synced", func(t *testing.T) {
		c := new(cluster).collection(things)
		ctl := controller.New("test", &recorder{}, controller.Options{})
		ctl.Watch(controller.For(c.informer())) // never run
		stop := start(t, ctl.Run)
		synctest.Wait()
		cancelled := time.Now()
		require.NoError(t, stop())
		require.Zero(t, time.Since(cancelled))
		require.False(t, ctl.Stats().Synced)
	})
	fixture.Bubble(t, "at a deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var seen reports
		ctl := traced(controller.New("test", blocked, controller.Options{}), seen.add)
		ctl.Watch(oddSource(func(_ context.Context, sink *controller.Sink[string]) error {
			sink.Add("a", workqueue.Item{})
			return nil
		}))
		require.NoError(t, ctl.Run(ctx))
		all := seen.take()
		require.Len(t, all, 1)
		require.ErrorIs(t, all[0].Err, context.DeadlineExceeded)
		require.Equal(t, controller.Cancelled, all[0].Outcome)
	})
	fixture.Bubble(t, "cancelled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		ctl.Watch(newFeed())
		require.NoError(t, ctl.Run(ctx))
	})
}

func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		stop := start(t, ctl.Run)
		<-ctl.Synced()
		require.ErrorIs(t, ctl.Run(t.Context()), controller.ErrRunning)
		require.NoError(t, stop())
		require.ErrorIs(t, ctl.Run(t.Context()), controller.ErrRunning)
	})
}

func TestMisusePanics(t *testing.T) {
	require.Panics(t, func() { controller.New("", reconcileFunc(succeed), controller.Options{}) })
	require.Panics(t, func() { controller.New[string]("test", nil, controller.Options{}) })
	require.Panics(t, func() { controller.New("test", reconcileFunc(succeed), controller.Options{Workers: -1}) })
	require.Panics(t, func() { controller.New("test", reconcileFunc(succeed), controller.Options{}).Watch(nil) })
	require.Panics(t, func() { controller.For[*thing](nil) })
	c := new(cluster).collection(things).informer()
	require.Panics(t, func() { controller.Map[*thing, api.Key](c, nil) })
	require.Panics(t, func() { controller.For(c).When(nil) })
	require.Equal(t, nil, controller.TerminalError(nil))
}

func TestCausesBeyondTheBoundAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		ctl := controller.New("test", controller.Func[int](func(context.Context, int) (controller.Result, error) {
			return controller.Result{}, nil
		}), controller.Options{Queue: workqueue.Options{MaxCauses: 1}, Logger: zap.New(core)})
		ctl.Watch(controller.Map(new(cluster).collection(things).running(t), func(*thing) []int { return nil }))
		ctl.Watch(flood{})
		start(t, ctl.Run)
		synctest.Wait()
		fields := logs.FilterMessage("reconciled").All()[0].ContextMap()
		require.Equal(t, []any{"flood add default/web-0", "and 2 more"}, fields["causes"])
		require.Equal(t, "7", fields["key"])
	})
}

// flood is a source that adds one key for three reasons and then ends.
type flood struct{}

func (flood) String() string   { return "flood" }
func (flood) NotSynced() error { return nil }

func (flood) Run(_ context.Context, sink *controller.Sink[int]) error {
	for i := range 3 {
		sink.Add(7, workqueue.Item{Cause: workqueue.Cause{Source: "flood", Event: "add", Object: fmt.Sprint("default/web-", i)}})
	}
	return nil
}

// TestOrderOfPriorities lets keys wait behind one that is being processed.
func TestOrderOfPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		leave := make(chan struct{})
		var first atomic.Bool
		ctl := controller.New("test", reconcileFunc(func(_ context.Context, key string) (controller.Result, error) {
			if first.CompareAndSwap(false, true) {
				<-leave
			}
			order = append(order, key)
			return controller.Result{}, nil
		}), controller.Options{})
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("first", workqueue.Item{})
		synctest.Wait()
		f.add("low", workqueue.Item{Priority: controller.LowPriority})
		f.add("normal", workqueue.Item{})
		f.add("high", workqueue.Item{Priority: 1})
		synctest.Wait()
		close(leave)
		synctest.Wait()
		require.Equal(t, []string{"first", "high", "normal", "low"}, order)
	})
}
