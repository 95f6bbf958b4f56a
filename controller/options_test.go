package controller_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/workqueue"
)

// TestWorkersOfAKind counts the reconciles that run at once.
func TestWorkersOfAKind(t *testing.T) {
	kinds := map[schema.GroupKind]int{{Group: "apps", Kind: "Owner"}: 5, {Group: "batch", Kind: "Thing"}: 7}
	for _, c := range []struct {
		name string
		o    controller.Options
		want map[string]int // by the watched sources
	}{
		{"nothing is said", controller.Options{}, map[string]int{"for": 1, "mapped": 1}},
		{"a default", controller.Options{Tuning: controller.Tuning{DefaultWorkers: 3}}, map[string]int{"for": 3, "owns": 3, "mapped": 3, "nothing": 3}},
		{"a kind", controller.Options{Tuning: controller.Tuning{DefaultWorkers: 3, KindWorkers: kinds}}, map[string]int{
			"for": 5, "owns": 5, "mapped, for": 5, "other": 3, "mapped": 3, "nothing": 3, "removed": 5, "late": 3,
		}},
		{"its own", controller.Options{Workers: 2, Tuning: controller.Tuning{DefaultWorkers: 3, KindWorkers: kinds}}, map[string]int{"for": 2, "mapped": 2}},
	} {
		for watched, want := range c.want {
			fixture.Bubble(t, c.name+"/"+watched, func(t *testing.T) {
				var all cluster
				ownersInf, thingsInf := all.collection(owners).running(t), all.collection(things).running(t)
				mapped := controller.Map(thingsInf, func(*thing) []api.Key { return nil })
				leave := make(chan struct{})
				defer close(leave)
				ctl := controller.New("test", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
					<-leave
					return controller.Result{}, nil
				}), c.o)
				for _, s := range map[string][]controller.Source[api.Key]{
					"for":         {controller.For(ownersInf), controller.For(thingsInf)},
					"owns":        {controller.Owns(ownersInf, thingsInf)},
					"mapped, for": {mapped, controller.For(ownersInf)},
					"other":       {controller.For(thingsInf), controller.For(ownersInf)},
					"mapped":      {mapped},
					"removed":     {controller.For(ownersInf)},
				}[watched] {
					w := ctl.Watch(s)
					if watched == "removed" {
						w.Remove()
					}
				}
				require.Equal(t, want, ctl.Stats().Workers, "before Run")
				start(t, ctl.Run)
				<-ctl.Synced()
				if watched == "late" {
					ctl.Watch(controller.For(ownersInf))
				}
				for i := range 10 {
					ctl.Add(keyOf(string(rune('a'+i))), workqueue.Item{})
				}
				synctest.Wait()
				require.Equal(t, want, ctl.Stats().ActiveWorkers)
				require.Equal(t, want, ctl.Stats().Workers)
			})
		}
	}
}

func TestEffectiveOptions(t *testing.T) {
	withoutFuncs := func(o controller.Options) controller.Options {
		o.Queue.Metrics, o.Logger = nil, nil
		return o
	}
	plain := controller.New("plain", reconcileFunc(succeed), controller.Options{})
	require.Equal(t, controller.Options{
		Workers: 1,
		Queue: workqueue.Options{
			Name:    "plain",
			Backoff: workqueue.Backoff{Base: 5 * time.Millisecond, Max: 1000 * time.Second}, Bucket: workqueue.Bucket{QPS: 10, Burst: 100},
			MaxCauses: 4,
		},
		CacheSyncTimeout: 2 * time.Minute,
		Tuning:           controller.Tuning{StuckAfter: 5 * time.Minute, History: 256},
	}, withoutFuncs(plain.Options()))

	given := controller.Options{
		Workers: 2,
		Queue: workqueue.Options{
			Name:    "all",
			Backoff: workqueue.Backoff{Base: time.Second, Max: time.Minute, Jitter: 0.5}, Bucket: workqueue.Bucket{QPS: -1, Burst: 7},
			MaxCauses: 9,
		},
		MaxRetries: 3, ReconcileTimeout: time.Hour, CacheSyncTimeout: time.Minute,
		Tuning: controller.Tuning{CrashOnPanic: true, StuckAfter: -1, History: -1},
	}
	require.Equal(t, given, withoutFuncs(controller.New("all", reconcileFunc(succeed), given).Options()))

	kinds := map[schema.GroupKind]int{{Group: "apps", Kind: "Owner"}: 5}
	limited := controller.New("limited", reconcileFunc(succeed), controller.Options{Tuning: controller.Tuning{KindWorkers: kinds}}, workqueue.FastSlow[string](1, 2, 3))
	require.Zero(t, limited.Options().Queue.Backoff)
	require.Zero(t, limited.Options().Queue.Bucket)

	byKind := controller.New("by kind", &recorder{}, controller.Options{Tuning: controller.Tuning{KindWorkers: kinds}})
	require.Equal(t, 1, byKind.Options().Workers)
	byKind.Watch(controller.For(new(cluster).collection(owners).informer()))
	require.Equal(t, 5, byKind.Options().Workers)
}

// TestDefaultsOfTheQueue checks that the queue's defaults are those that Options returns.
func TestDefaultsOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen reports
		ctl := traced(controller.New("test", reconcileFunc(func(context.Context, string) (controller.Result, error) {
			return controller.Result{}, errPanic
		}), controller.Options{MaxRetries: 30, Queue: workqueue.Options{Backoff: workqueue.Backoff{Base: time.Second}}}), seen.add)
		start(t, ctl.Run)
		ctl.Add("a", workqueue.Item{})
		pass(24 * time.Hour)
		all := seen.take()
		require.Len(t, all, 31)
		longest := all[len(all)-1].Started.Sub(all[len(all)-2].Started)
		require.Equal(t, ctl.Options().Queue.Backoff.Max, longest)
	})
}

// TestAgeing lets a low priority wait behind a queue that is never empty.
func TestAgeing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		var ctl *controller.Controller[string]
		ctl = controller.New("test", reconcileFunc(func(_ context.Context, key string) (controller.Result, error) {
			if order = append(order, key); len(order) < 50 {
				ctl.Add(key+"'", workqueue.Item{}) // an event always comes
			}
			return controller.Result{}, nil
		}), controller.Options{})
		ctl.Add("low", workqueue.Item{Priority: controller.LowPriority})
		ctl.Add("busy", workqueue.Item{})
		start(t, ctl.Run)
		synctest.Wait()
		at := slices.Index(order, "low") + 1
		require.Greater(t, at, 1, "the event goes first")
		require.LessOrEqual(t, at, 8)
	})
}

// TestResourceIsLogged checks the fields of every log entry of a controller.
func TestResourceIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		server := new(cluster).collection(owners)
		server.apply(named("a"))
		ctl := controller.New("test", controller.Func[api.Key](func(ctx context.Context, _ api.Key) (controller.Result, error) {
			controller.Logger(ctx).Info("hello")
			return controller.Result{}, nil
		}), controller.Options{Logger: zap.New(core)})
		ctl.Watch(controller.For(server.running(t)))
		start(t, ctl.Run)
		synctest.Wait()
		hello := logs.FilterMessage("hello").All()
		require.Len(t, hello, 1)
		require.Equal(t, "owners.apps", hello[0].ContextMap()["resource"])
		require.Equal(t, "default/a", hello[0].ContextMap()["key"])
	})
}
