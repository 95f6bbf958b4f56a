package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/workqueue"
)

// door is a gate that the test opens and closes.
type door struct {
	mu    sync.Mutex // guards the fields below
	shut  map[string]bool
	again map[string][]func()
	asked map[string]int
	begun []string
}

type doorKey struct{}

func newDoor(shut ...string) *door {
	d := &door{shut: map[string]bool{}, again: map[string][]func(){}, asked: map[string]int{}}
	for _, key := range shut {
		d.shut[key] = true
	}
	return d
}

func (d *door) Ready(key string, again func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[key]++
	if d.shut[key] {
		d.again[key] = append(d.again[key], again)
	}
	return !d.shut[key]
}

func (d *door) Begin(ctx context.Context, key string) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun = append(d.begun, key)
	return context.WithValue(ctx, doorKey{}, key)
}

func (d *door) close(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut[key] = true
}

func (d *door) open(key string) {
	d.mu.Lock()
	waiting := d.again[key]
	delete(d.again, key)
	delete(d.shut, key)
	d.mu.Unlock()
	for _, again := range waiting {
		again()
	}
}

func (d *door) timesAsked(key string) int {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[key]
}

func because(event string) workqueue.Item {
	return workqueue.Item{Cause: workqueue.Cause{Source: "test", Event: event}}
}

func eventsOf(r controller.Report) []string {
	var events []string
	for _, c := range r.Causes {
		events = append(events, c.Event)
	}
	return events
}

func TestGatedKeyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		d := newDoor("a")
		ctl := traced(controller.New("test", controller.Gated(reconcileFunc(func(ctx context.Context, key string) (controller.Result, error) {
			require.Equal(t, key, ctx.Value(doorKey{}), "the context comes from the gate")
			return controller.Result{}, nil
		}), d), controller.Options{Queue: workqueue.Options{MaxCauses: 3}}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)

		added := time.Now()
		urgent := because("first")
		urgent.Priority = 7
		f.add("a", urgent)
		pass(time.Second)
		f.add("b", workqueue.Item{})
		all := seen.take()
		require.Len(t, all, 1, "the only worker is free")
		require.Equal(t, "b", all[0].Key)
		require.Equal(t, 1, ctl.Stats().Gated)
		require.Zero(t, ctl.Stats().Queue.Depth)

		for _, event := range []string{"second", "third", "fourth", "fifth"} {
			f.add("a", because(event))
			pass(time.Second)
		}
		require.Equal(t, 1, d.timesAsked("a"), "the gate said no and has not called again")
		require.Empty(t, seen.take())

		d.open("a")
		all = seen.take()
		require.Len(t, all, 1)
		require.Equal(t, []string{"first", "second", "third"}, eventsOf(all[0]))
		require.Equal(t, 2, all[0].CausesOmitted)
		require.Equal(t, 7, all[0].Priority)
		require.Equal(t, 1, all[0].Attempt, "no failure was counted")
		require.Equal(t, added, all[0].Added)
		require.Equal(t, added.Add(5*time.Second), all[0].Ready)
		require.Zero(t, ctl.Stats().Gated)
		require.EqualValues(t, 2, ctl.Stats().Reconciles)
		require.Equal(t, 2, d.timesAsked("a"))

		f.add("a", because("sixth"))
		all = seen.take()
		require.Len(t, all, 1)
		require.Equal(t, []string{"sixth"}, eventsOf(all[0]), "no earlier cause is left")
	})
}

// TestGateThatShutsAgain holds a key twice in a row.
func TestGateThatShutsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		var held []func()
		gate := gateFunc(func(_ string, again func()) bool {
			held = append(held, again)
			return len(held) > 2
		})
		ctl := traced(controller.New("test", controller.Gated(reconcileFunc(succeed), gate), controller.Options{}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", because("first"))
		synctest.Wait()
		held[0]()
		f.add("a", because("second"))
		synctest.Wait()
		require.Len(t, held, 2)
		held[0]() // a second call for the same question
		require.Empty(t, seen.take())
		require.Len(t, held, 2, "the call belongs to an earlier question")
		held[1]()
		all := seen.take()
		require.Len(t, all, 1)
		require.Equal(t, []string{"first", "second"}, eventsOf(all[0]))
		held[2]() // by a gate that was ready
		pass(time.Hour)
		require.Empty(t, seen.take())
		require.Zero(t, ctl.Stats().Queue.Depth)
	})
}

// gateFunc is a gate that is a function.
type gateFunc func(key string, again func()) bool

func (f gateFunc) Ready(key string, again func()) bool { return f(key, again) }

func (gateFunc) Begin(ctx context.Context, _ string) context.Context { return ctx }

func TestGateThatIsReadyBeforeItHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		asked := 0
		ctl := traced(controller.New("test", controller.Gated(reconcileFunc(succeed), gateFunc(func(_ string, again func()) bool {
			if asked++; asked == 1 {
				again()
				return false
			}
			return true
		})), controller.Options{}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", because("first"))
		all := seen.take()
		require.Len(t, all, 1)
		require.Equal(t, []string{"first"}, eventsOf(all[0]))
		require.Equal(t, 2, asked)
	})
}

func TestGateCountsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		d := newDoor()
		ctl := traced(controller.New("test", controller.Gated(reconcileFunc(func(ctx context.Context, key string) (controller.Result, error) {
			if controller.Attempt(ctx) < 3 {
				d.close(key)
				return controller.Result{}, errors.New("no luck")
			}
			return controller.Result{}, nil
		}), d), controller.Options{Queue: workqueue.Options{Backoff: workqueue.Backoff{Base: time.Second, Max: time.Hour}}}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{Priority: -3})
		pass(time.Minute)
		d.open("a")
		pass(time.Minute)
		d.open("a")
		all := seen.take()
		require.Len(t, all, 3)
		require.Equal(t, time.Minute, all[1].Started.Sub(all[0].Started))
		for i, report := range all {
			require.Equal(t, i+1, report.Attempt)
			require.Equal(t, -3, report.Priority)
		}
		require.Equal(t, []string{"retry"}, eventsOf(all[2]))
	})
}

func TestSeveralGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		inner, outer := newDoor("a"), newDoor("a")
		r := controller.Gated(controller.Gated(reconcileFunc(succeed), inner), outer)
		ctl := traced(controller.New("test", r, controller.Options{}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		require.Zero(t, inner.timesAsked("a"))
		outer.open("a")
		require.Equal(t, 1, inner.timesAsked("a"))
		require.Empty(t, seen.take())
		outer.close("a")
		inner.open("a")
		require.Empty(t, seen.take(), "both must be ready at the same time")
		outer.open("a")
		require.Len(t, seen.take(), 1)
		require.Equal(t, []string{"a"}, inner.begun)
		require.Equal(t, []string{"a"}, outer.begun)
	})
}

func TestGatePanicPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.ErrorLevel)
		var seen reports
		ctl := traced(controller.New("test", controller.Gated(reconcileFunc(succeed), gateFunc(func(string, func()) bool {
			panic("a bug")
		})), controller.Options{Logger: zap.New(core)}), seen.add)
		f := newFeed()
		ctl.Watch(f)
		start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		require.Len(t, seen.take(), 1)
		require.EqualValues(t, 1, ctl.Stats().SourcePanics)
		entry := logs.FilterMessage("gate panicked").All()
		require.Len(t, entry, 1)
		require.Equal(t, "a", entry[0].ContextMap()["key"])
		require.Contains(t, entry[0].ContextMap()["stack"], "gateFunc")
	})
}

func TestGatedOutsideOfAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor("a")
		r := controller.Gated(reconcileFunc(func(ctx context.Context, key string) (controller.Result, error) {
			require.Equal(t, key, ctx.Value(doorKey{}))
			return controller.Result{Priority: 5}, nil
		}), d)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, must.Err(r.Reconcile(ctx, "a")), context.DeadlineExceeded)

		go func() {
			linger(time.Hour)
			d.open("a")
		}()
		require.Equal(t, 5, must.Get(r.Reconcile(t.Context(), "a"))(t).Priority)
	})
}

func TestRunEndsWithKeysHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor("a")
		ctl := controller.New("test", controller.Gated(reconcileFunc(succeed), d), controller.Options{})
		f := newFeed()
		ctl.Watch(f)
		stop := start(t, ctl.Run)
		f.add("a", workqueue.Item{})
		require.Equal(t, 1, d.timesAsked("a"))
		require.NoError(t, stop())
		d.open("a")
		require.Zero(t, ctl.Stats().Reconciles)
		require.Zero(t, ctl.Stats().Queue.Depth)
	})
}

// TestGateLosesNothing opens and shuts a gate at random while keys are added. A reconcile that begins after an add
// reports the add exactly once, as a cause or in the number of omitted causes.
func TestGateLosesNothing(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			const keys = 5
			d, told := newDoor(), map[string]int{}
			var mu sync.Mutex
			ctl := traced(controller.New("test", controller.Gated(reconcileFunc(succeed), d), controller.Options{
				Workers: 3,
			}), func(report controller.Report) {
				mu.Lock()
				defer mu.Unlock()
				told[report.Key] += len(report.Causes) + report.CausesOmitted
			})
			f := newFeed()
			ctl.Watch(f)
			start(t, ctl.Run)
			added := map[string]int{}
			for range 500 {
				key := fmt.Sprint(r.IntN(keys))
				switch r.IntN(6) {
				case 0:
					d.close(key)
				case 1:
					go d.open(key)
				case 2:
					synctest.Wait()
				default:
					added[key]++
					f.add(key, because("add"))
				}
			}
			for key := range keys {
				d.open(fmt.Sprint(key))
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, added, told, "seed %d", seed)
			require.Zero(t, ctl.Stats().Gated)
		})
	}
}

func TestWorkersAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(cluster).collection(things)
		server.apply(named("a"))
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{Workers: 2})
		ctl.Watch(controller.For(server.running(t)))
		elected := make(chan struct{})
		start(t, func(ctx context.Context) error { return ctl.RunHeld(ctx, elected) })

		<-ctl.Synced()
		server.apply(named("b"))
		pass(time.Hour)
		require.Empty(t, r.names())
		require.Equal(t, 2, ctl.Stats().Queue.Depth)
		require.True(t, ctl.Stats().Held)
		require.Zero(t, ctl.Stats().Queue.Processing)

		close(elected)
		require.ElementsMatch(t, []string{"a", "b"}, r.names())
		require.False(t, ctl.Stats().Held)
	})
}

func TestReleasedBeforeSyncedWaitsForTheSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		server := new(cluster).collection(things)
		server.apply(named("a"))
		inf := server.informer()
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.For(inf))
		elected := make(chan struct{})
		close(elected)
		start(t, func(ctx context.Context) error { return ctl.RunHeld(ctx, elected) })
		pass(time.Minute)
		require.False(t, ctl.Stats().Held, "the controller waits for the source")
		require.Empty(t, r.names())
		start(t, inf.Run)
		require.Equal(t, []string{"a"}, r.names())
	})
}

func TestHeldControllerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{Logger: zap.New(core)})
		never := make(chan struct{})
		stop := start(t, func(ctx context.Context) error { return ctl.RunHeld(ctx, never) })
		<-ctl.Synced()
		require.NoError(t, stop())
		require.False(t, ctl.Stats().Held)
		require.Empty(t, logs.FilterMessage("workers started").All())
	})
	synctest.Test(t, func(t *testing.T) {
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
		failure, fail := errors.New("deaf"), make(chan struct{})
		ctl.Watch(oddSource(func(_ context.Context, sink *controller.Sink[string]) error {
			sink.Synced()
			<-fail
			return failure
		}))
		ended := make(chan error)
		go func() { ended <- ctl.RunHeld(t.Context(), make(chan struct{})) }()
		<-ctl.Synced()
		close(fail)
		require.ErrorIs(t, <-ended, failure)
	})
}
