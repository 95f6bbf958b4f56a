package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/predicate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/workqueue"
)

func TestSyncTimeoutNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		good, bad := c.collection(owners), c.collection(things)
		bad.fail(apierrors.NewForbidden(things.GroupResource(), "", errors.New("ask your administrator")))
		ctl := controller.New("replicaset", &recorder{}, controller.Options{})
		ownersInformer := good.running(t)
		ctl.Watch(controller.For(ownersInformer))
		lost := ctl.Watch(controller.Owns(ownersInformer, bad.running(t)))
		began := time.Now()
		err := ctl.Run(t.Context())
		require.Equal(t, 2*time.Minute, time.Since(began))
		require.Regexp(t, `^controller: replicaset: source things \(owned by owners.apps\) not synced after 2m0s: `+
			`things: not synced, .*, 0 objects received, after \d+ failures: .*things is forbidden: ask your administrator$`, err.Error())
		require.True(t, apierrors.IsForbidden(err))
		require.ErrorIs(t, err, controller.ErrNotSynced)
		var late *controller.SyncError
		require.ErrorAs(t, err, &late)
		require.Equal(t, "replicaset", late.Controller)
		<-lost.Done()
	})
}

func TestSyncTimeoutNamesEverySource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		idle, stuck, silent := c.collection(owners), c.collection(things), newFeed()
		stuck.apply(named("a"))
		unblock := make(chan struct{})
		ctl := controller.New("test", &recorder{}, controller.Options{CacheSyncTimeout: time.Second})
		ctl.Watch(controller.For(idle.informer())) // never run
		ctl.Watch(controller.Map(stuck.running(t), func(*thing) []api.Key { <-unblock; return nil }).Named("slow"))
		time.AfterFunc(time.Minute, func() { close(unblock) })
		require.EqualError(t, ctl.Run(t.Context()),
			"controller: test: source owners.apps not synced after 1s: owners.apps: not running; was it, or its factory, added to the manager?\n"+
				"controller: test: source slow not synced after 1s: the initial list is still being processed")

		silent.synced = make(chan struct{})
		other := controller.New("other", reconcileFunc(succeed), controller.Options{CacheSyncTimeout: time.Second})
		other.Watch(silent)
		require.EqualError(t, other.Run(t.Context()), "controller: other: source feed not synced after 1s")
	})
}

// TestSyncTimeoutNamesNoOther has sources that become synced while Run waits for the first one.
func TestSyncTimeoutNamesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, slow, prompt := newFeed(), newFeed(), newFeed()
		stuck.synced, slow.synced = make(chan struct{}), make(chan struct{})
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{CacheSyncTimeout: time.Minute})
		for _, f := range []*feed{stuck, slow, prompt} {
			ctl.Watch(f)
		}
		time.AfterFunc(time.Second, func() { close(slow.synced) })
		require.EqualError(t, ctl.Run(t.Context()), "controller: test: source feed not synced after 1m0s")
	})
}

func TestOwnsWaitsForOwnersToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		ctl := controller.New("test", &recorder{}, controller.Options{CacheSyncTimeout: time.Second})
		ctl.Watch(controller.Owns(c.collection(owners).informer(), c.collection(things).running(t)))
		require.ErrorContains(t, ctl.Run(t.Context()), "owners.apps: not running")
	})
}

func TestNoSyncTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		f.synced = make(chan struct{})
		ctl := controller.New("test", reconcileFunc(succeed), controller.Options{CacheSyncTimeout: -1})
		ctl.Watch(f)
		start(t, ctl.Run)
		pass(1000 * time.Hour)
		close(f.synced)
		<-ctl.Synced()
		require.Len(t, ctl.Stats().Sources, 1)
	})
}

func TestWatchWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		first, second := c.collection(owners), c.collection(things)
		first.apply(named("a"))
		second.apply(named("b"))
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.For(first.running(t)))
		start(t, ctl.Run)
		require.Equal(t, []string{"a"}, r.names())
		w := ctl.Watch(controller.For(second.running(t)))
		<-w.Synced()
		require.Equal(t, []string{"b"}, r.names())
		require.Equal(t, "things", w.Name())
		require.Len(t, ctl.Stats().Sources, 2)
	})
}

func TestFailedSourceEndsTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		i := c.informer()
		stop := start(t, i.Run)
		ctl := controller.New("test", &recorder{}, controller.Options{})
		w := ctl.Watch(controller.For(i))
		result := make(chan error)
		go func() { result <- ctl.Run(t.Context()) }()
		<-ctl.Synced()
		require.NoError(t, w.Err())
		require.NoError(t, stop())
		err := <-result
		require.EqualError(t, err, "controller: test: source things: informer: stopped")
		require.ErrorIs(t, err, informer.ErrStopped)
		require.Equal(t, err, w.Err())
	})
}

// TestStoppedOwners stops the owners' informer. Its cache no longer changes, so Owns would compare old UIDs.
func TestStoppedOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster)
		above := c.collection(owners).informer()
		stop := start(t, above.Run)
		ctl := controller.New("test", &recorder{}, controller.Options{})
		ctl.Watch(controller.Owns(above, c.collection(things).running(t)))
		result := make(chan error)
		go func() { result <- ctl.Run(t.Context()) }()
		<-ctl.Synced()
		require.NoError(t, stop())
		require.ErrorIs(t, <-result, informer.ErrStopped)
	})
}

func TestSourceOfStoppedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := new(cluster).collection(things).informer()
		require.NoError(t, start(t, i.Run)())
		ctl := controller.New("test", &recorder{}, controller.Options{})
		ctl.Watch(controller.For(i))
		require.ErrorIs(t, ctl.Run(t.Context()), informer.ErrStopped)
	})
}

// oddSource is a source whose Run is a function.
type oddSource func(context.Context, *controller.Sink[string]) error

func (oddSource) String() string   { return "odd" }
func (oddSource) NotSynced() error { return nil }
func (s oddSource) Run(ctx context.Context, sink *controller.Sink[string]) error {
	return s(ctx, sink)
}

func TestSourcesOfAnyKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(s oddSource) (*controller.Controller[string], *controller.SourceRegistration, error) {
			ctl := controller.New("test", reconcileFunc(succeed), controller.Options{})
			w := ctl.Watch(s)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return ctl, w, ctl.Run(ctx)
		}
		ctl, w, err := run(func(_ context.Context, sink *controller.Sink[string]) error {
			sink.Add("a", workqueue.Item{})
			return nil
		})
		require.NoError(t, err, "a source may end without an error")
		require.EqualValues(t, 1, ctl.Stats().Reconciles)
		require.NoError(t, w.Err())

		_, w, err = run(func(_ context.Context, sink *controller.Sink[string]) error {
			sink.Synced()
			panic("a bug")
		})
		require.EqualError(t, err, "controller: test: source odd: panic: a bug [recovered]")
		require.Equal(t, err, w.Err())

		_, _, err = run(func(ctx context.Context, _ *controller.Sink[string]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err, "an error of an ending source is ignored")

		ctl, _, err = run(func(ctx context.Context, _ *controller.Sink[string]) error {
			<-ctx.Done()
			panic("a bug")
		})
		require.NoError(t, err)
		require.EqualValues(t, 1, ctl.Stats().SourcePanics, "a panic of an ending source counts")
	})
}

func TestReleasedShareEndsItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		c.apply(named("a"))
		f := factory.New(factory.Options{})
		start(t, f.Run)
		o := informer.Options[*thing]{Tuning: reflector.Tuning{NoWatchList: true}}
		mine := must.Get(factory.Shared(f, c, o))(t)
		others := must.Get(factory.Shared(f, c, o))(t)

		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		w := ctl.Watch(controller.For(mine).When(predicate.GenerationChanged))
		ctl.Watch(controller.Owns(others, mine))
		start(t, ctl.Run)
		require.Equal(t, []string{"a"}, r.names())

		w.Remove()
		<-w.Done()
		stopped := controller.New("other", &recorder{}, controller.Options{})
		stopped.Watch(controller.For(others))
		result := make(chan error)
		go func() { result <- stopped.Run(t.Context()) }()
		<-stopped.Synced()
		others.Release()
		require.ErrorIs(t, <-result, informer.ErrStopped, "the informer runs on, but sends no more notifications")
	})
}

// TestClauses combines predicates on a source. The name of each object says what it is.
func TestClauses(t *testing.T) {
	is := func(names ...string) func(api.Change[*thing]) bool {
		return predicate.Object(func(object *thing) bool {
			for _, name := range names {
				if object.Name == name {
					return true
				}
			}
			return false
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		i := c.running(t)
		base := controller.For(i)
		sources := map[string]struct {
			source controller.InformerSource[*thing, api.Key]
			want   []string
		}{
			"none":           {base, []string{"a", "b", "c", "d"}},
			"when":           {base.When(is("a", "b")), []string{"a", "b"}},
			"when both":      {base.When(is("a", "b"), is("b", "c")), []string{"b"}},
			"when, when":     {base.When(is("a", "b")).When(is("b", "c")), []string{"b"}},
			"when nothing":   {base.When(), []string{"a", "b", "c", "d"}},
			"unless":         {base.Unless(is("a")), []string{"b", "c", "d"}},
			"unless either":  {base.Unless(is("a"), is("b")), []string{"c", "d"}},
			"any":            {base.WhenAny(is("a"), is("b")), []string{"a", "b"}},
			"any of nothing": {base.WhenAny(), nil},
			"all":            {base.WhenAny(is("a"), is("b"), is("c")).Unless(is("b")).When(is("a", "b", "d")), []string{"a"}},
		}
		// Both are made from one source whose filter has free capacity. Neither sees the other's predicate.
		some := is("a", "b", "c")
		shared := base.When(some, some, some)
		one, two := shared.When(is("a")), shared.When(is("b"))
		sources["forked"] = struct {
			source controller.InformerSource[*thing, api.Key]
			want   []string
		}{one, []string{"a"}}
		sources["forked too"] = struct {
			source controller.InformerSource[*thing, api.Key]
			want   []string
		}{two, []string{"b"}}

		recorders := map[string]*recorder{}
		for name, test := range sources {
			recorders[name] = &recorder{}
			ctl := controller.New(name, recorders[name], controller.Options{})
			ctl.Watch(test.source)
			start(t, ctl.Run)
		}
		synctest.Wait()
		for _, name := range []string{"a", "b", "c", "d"} {
			c.apply(named(name))
		}
		for name, test := range sources {
			require.ElementsMatch(t, test.want, recorders[name].names(), name)
		}
	})
}

func TestPredicatePanicPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.ErrorLevel)
		c := new(cluster).collection(things)
		bug := func(n api.Change[*thing]) bool {
			if n.Object.Name == "a" {
				panic("a bug")
			}
			return true
		}
		never := func(api.Change[*thing]) bool { return false }
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{Logger: zap.New(core)})
		i := c.running(t)
		ctl.Watch(controller.For(i).Unless(bug))
		ctl.Watch(controller.For(i).When(never).When(bug))
		start(t, ctl.Run)
		synctest.Wait()
		c.apply(named("b"))
		c.apply(named("a"))
		require.Equal(t, []string{"a"}, r.names(), "a panic passes only its own clause")
		s := ctl.Stats()
		require.EqualValues(t, 1, s.SourcePanics)
		require.EqualValues(t, 1, s.Sources[0].Panics)
		entry := logs.FilterMessage("source panicked").All()[0].ContextMap()
		require.Equal(t, "default/a", entry["key"])
		require.Equal(t, "predicate", entry["in"])
		require.Contains(t, entry["stack"], "TestPredicatePanicPasses")
	})
}

func TestMapPanicIsContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		first, second := named("a"), named("a")
		first.Spec, second.Spec = "bug", "fine"
		r := &recorder{}
		ctl := controller.New("test", r, controller.Options{})
		ctl.Watch(controller.Map(c.running(t), func(object *thing) []api.Key {
			if object.Spec == "bug" {
				panic("a bug")
			}
			return []api.Key{keyOf(object.Spec)}
		}))
		start(t, ctl.Run)
		synctest.Wait()
		c.apply(first)
		require.Empty(t, r.names())
		c.apply(second)
		require.Equal(t, []string{"fine"}, r.names(), "f panics for the old state but not for the new one")
		require.EqualValues(t, 2, ctl.Stats().SourcePanics)
	})
}

func TestMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		var seen reports
		ctl := traced(controller.New("test", reconcileFunc(succeed), controller.Options{Queue: workqueue.Options{MaxCauses: 10}}), seen.add)
		ctl.Watch(controller.Map(c.running(t), func(object *thing) []string {
			var keys []string
			for _, letter := range object.Spec {
				keys = append(keys, string(letter))
			}
			return keys
		}))
		start(t, ctl.Run)
		synctest.Wait()
		reconciled := func() (keys []string) {
			for _, report := range seen.take() {
				require.Len(t, report.Causes, 1, "a key is added once per event")
				keys = append(keys, report.Key)
			}
			return keys
		}
		object := named("a")
		object.Spec = "xyx"
		c.apply(object)
		require.ElementsMatch(t, []string{"x", "y"}, reconciled())
		object.Spec = "yz"
		c.apply(object)
		require.ElementsMatch(t, []string{"x", "y", "z"}, reconciled(), "the key of the old state is added too")
		object.Spec = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
		c.apply(object)
		require.Len(t, reconciled(), 26)
		c.delete("a")
		require.Len(t, reconciled(), 26)
	})
}

// TestMapIsCalledOncePerState counts the calls of a map function. A resync has one state.
func TestMapIsCalledOncePerState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		var calls atomic.Int64
		i := informer.New(c, informer.Options[*thing]{Tuning: reflector.Tuning{NoWatchList: true}, Handling: informer.Handling{ResyncPeriod: time.Hour}})
		ctl := controller.New("test", &recorder{}, controller.Options{})
		ctl.Watch(controller.Map(i, func(*thing) []api.Key { calls.Add(1); return nil }))
		start(t, ctl.Run)
		start(t, i.Run)
		synctest.Wait()
		for _, step := range []struct {
			do    func()
			calls int64
		}{
			{func() { c.apply(named("a")) }, 1},
			{func() { c.apply(named("a")) }, 2},
			{func() { pass(time.Hour) }, 1},
			{func() { c.delete("a") }, 1},
		} {
			step.do()
			synctest.Wait()
			require.Equal(t, step.calls, calls.Swap(0))
		}
	})
}

func TestInitialListAndResyncAreLowPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cluster).collection(things)
		before := c.apply(named("before"))
		var seen reports
		ctl := traced(controller.New("test", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
			return controller.Result{}, nil
		}), controller.Options{}), seen.add)
		i := informer.New(c, informer.Options[*thing]{Tuning: reflector.Tuning{NoWatchList: true}, Handling: informer.Handling{ResyncPeriod: time.Hour}})
		began := time.Now()
		ctl.Watch(controller.For(i))
		start(t, ctl.Run)
		synctest.Wait()
		start(t, i.Run)

		check := func(priority int, cause workqueue.Cause) {
			t.Helper()
			all := seen.take()
			require.Len(t, all, 1)
			require.Equal(t, priority, all[0].Priority)
			require.Equal(t, []workqueue.Cause{cause}, all[0].Causes)
			require.Equal(t, cause.Object, all[0].Key)
		}
		check(controller.LowPriority, workqueue.Cause{
			Source: "things", Event: "initial", Object: "default/before", Version: before.ResourceVersion, At: began,
		})
		pass(time.Minute)
		at := time.Now()
		c.apply(named("before"))
		check(0, workqueue.Cause{Source: "things", Event: "update", Object: "default/before", Version: "2", At: at})
		pass(time.Hour)
		check(controller.LowPriority, workqueue.Cause{
			Source: "things", Event: "resync", Object: "default/before", Version: "2", At: began.Add(time.Hour),
		})
		pass(time.Minute)
		at = time.Now()
		c.delete("before")
		check(0, workqueue.Cause{Source: "things", Event: "delete", Object: "default/before", Version: "3", At: at})
		c.apply(named("after"))
		check(0, workqueue.Cause{Source: "things", Event: "add", Object: "default/after", Version: "4", At: at})
	})
}

func TestSourceNames(t *testing.T) {
	c := new(cluster)
	o, i := c.collection(owners).informer(), c.collection(things).informer()
	require.Equal(t, "owners.apps", fmt.Sprint(controller.For(o)))
	require.Equal(t, "things (owned by owners.apps)", fmt.Sprint(controller.Owns(o, i)))
	require.Equal(t, "things (mapped)", fmt.Sprint(controller.Map(i, func(*thing) []api.Key { return nil })))
	require.Equal(t, "mine", fmt.Sprint(controller.For(o).Named("mine")))
}
