package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/leatproject/leat/adapter/clientgo"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/testkit"
)

func TestHandlersGetTheCallsOfClientGo(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		var r recorder
		handle := mustAdd(k.T, i, &r)
		require.False(k, i.HasSynced())
		require.False(k, handle.HasSynced())
		require.Empty(k, i.LastSyncResourceVersion())
		start(k, i)
		<-i.HasSyncedChecker().Done()
		<-handle.HasSyncedChecker().Done()
		require.True(k, i.HasSynced())
		require.True(k, handle.HasSynced())
		require.Equal(k, []string{"add a initial=true", "add b initial=true"}, r.take())
		require.Equal(k, k.Server.ResourceVersion(), i.LastSyncResourceVersion())
		require.Equal(k, "SharedIndexInformer pods", i.HasSyncedChecker().Name())
		require.Contains(k, handle.HasSyncedChecker().Name(), "recorder")

		testkit.Edit(k, pods, key("a"), func(p *corev1.Pod) { p.Labels["app"] = "shop" })
		testkit.Create(k, pods, pod("c"))
		testkit.Delete(k, pods, key("b"))
		k.Idle()
		require.Equal(k, []string{"add c initial=false", "delete b", "update a"}, r.take())

		k.LoseEvents(func() {
			testkit.Delete(k, pods, key("c"))
			testkit.Create(k, pods, pod("d"))
		})
		require.Equal(k, []string{"add d initial=false", "tombstone default/c c"}, r.take())
		require.Equal(k, []string{"default/a", "default/d"}, keys(i.GetStore()))
	})
}

func TestHandlersComeAndGo(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		var early, late recorder
		first := mustAdd(k.T, i, &early)
		start(k, i)
		early.take()
		second := mustAdd(k.T, i, &late)
		k.Idle()
		require.True(k, second.HasSynced())
		require.Equal(k, []string{"add a initial=true", "add b initial=true"}, late.take())
		require.NoError(k, i.RemoveEventHandler(first))
		require.NoError(k, i.RemoveEventHandler(first), "again")
		other := newInformer(k, clientgo.Options[*corev1.Pod]{})
		require.NoError(k, other.RemoveEventHandler(second), "of another informer")
		testkit.Create(k, pods, pod("c"))
		k.Idle()
		require.Empty(k, early.take())
		require.Equal(k, []string{"add c initial=false"}, late.take())
	})
}

func TestShutDownEventHandlerWaitsForTheCall(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		called, proceed := make(chan struct{}), make(chan struct{})
		handle := mustAdd(k.T, i, cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			close(called) // a second call would panic
			<-proceed
		}})
		start(k, i)
		<-called
		down := make(chan error, 1)
		go func() { down <- cache.ShutDownEventHandler(i, handle) }()
		k.Idle()
		require.Empty(k, down, "a call is in flight")
		close(proceed)
		require.NoError(k, <-down)
	})
}

func TestResync(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		o := clientgo.Options[*corev1.Pod]{}
		o.ResyncPeriod = time.Minute
		i := newInformer(k, o)
		var byDefault, often, never recorder
		mustAdd(k.T, i, &byDefault)
		must.Get(i.AddEventHandlerWithResyncPeriod(&often, 30*time.Second))(k)
		must.Get(i.AddEventHandlerWithResyncPeriod(&never, 0))(k)
		start(k, i)
		for _, r := range []*recorder{&byDefault, &often, &never} {
			require.Len(k, r.take(), 2)
		}
		k.Pass(30*time.Second + time.Second)
		require.Empty(k, byDefault.take())
		require.Equal(k, []string{"resync a", "resync b"}, often.take())
		k.Pass(30 * time.Second)
		require.Equal(k, []string{"resync a", "resync b"}, byDefault.take())
		require.Len(k, often.take(), 2)
		require.Empty(k, never.take())
	})
}

// As in client-go, a handler that joins late gets the shortest period of those before the start, if it wants a shorter
// one.
func TestALateHandlerResyncsNoMoreOftenThanTheOthers(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		o := clientgo.Options[*corev1.Pod]{}
		o.ResyncPeriod = time.Hour
		i := newInformer(k, o)
		var early, late recorder
		must.Get(i.AddEventHandlerWithResyncPeriod(&early, time.Minute))(k)
		start(k, i)
		must.Get(i.AddEventHandlerWithResyncPeriod(&late, time.Second))(k)
		k.Pass(59 * time.Second)
		require.Len(k, late.take(), 2, "the additions")
		k.Pass(2 * time.Second)
		require.Equal(k, []string{"resync a", "resync b"}, late.take())
	})
}

// As in client-go, an informer without a resync period never resyncs, whatever a handler asks for.
func TestAnInformerWithoutAPeriodNeverResyncs(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		var r recorder
		must.Get(i.AddEventHandlerWithResyncPeriod(&r, time.Minute))(k)
		start(k, i)
		r.take()
		k.Pass(time.Hour)
		require.Empty(k, r.take())
	})
}

func TestLifecycle(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		require.False(k, i.IsStopped())
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			i.Run(stop)
		}()
		k.Idle()
		i.Run(stop) // a second Run returns at once
		i.GetController().RunWithContext(k.Context())
		require.True(k, i.GetController().HasSynced())
		require.False(k, i.IsStopped())
		require.Error(k, i.SetTransform(nil))
		require.Error(k, i.SetWatchErrorHandler(func(*cache.Reflector, error) {}))
		require.Error(k, i.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}))
		close(stop)
		<-ended
		require.True(k, i.IsStopped())
		require.ErrorContains(k, must.Err(i.AddEventHandler(&recorder{})), "stopped already")
		require.ErrorContains(k, i.AddIndexers(cache.Indexers{"x": nil}), "stopped")
		require.Equal(k, []string{"default/a", "default/b"}, keys(i.GetStore()), "the cache can still be read")
	})
}

func TestWatchErrors(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		var ours []string
		o := clientgo.Options[*corev1.Pod]{}
		o.OnError = func(err error) { ours = append(ours, err.Error()) }
		i := newInformer(k, o)
		var theirs []string
		require.NoError(k, i.SetWatchErrorHandler(func(*cache.Reflector, error) { theirs = append(theirs, "replaced") }))
		require.NoError(k, i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			theirs = append(theirs, err.Error())
		}))
		k.Fail("watch", "pods", 1, 403)
		start(k, i)
		k.Pass(time.Minute)
		require.True(k, i.HasSynced(), "%v", theirs)
		require.Len(k, theirs, 1)
		require.Contains(k, theirs[0], "watch pods")
		require.Equal(k, ours, theirs)
	})
}

// client-go's default handler reads the name of the reflector. It waits on real time, so this test has no bubble.
func TestTheDefaultWatchErrorHandler(t *testing.T) {
	lw := &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return nil, errors.New("no")
	}}
	i := clientgo.NewSharedIndexInformerWithOptions(lw, &corev1.Pod{}, cache.SharedIndexInformerOptions{ObjectDescription: "pods of a node"})
	require.Equal(t, "SharedIndexInformer pods of a node", i.HasSyncedChecker().Name())
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	var got error
	require.NoError(t, i.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		require.Equal(t, "pods of a node", r.TypeDescription())
		got = err
		cancel()
	}))
	i.RunWithContext(ctx)
	require.ErrorContains(t, got, "no")
}

func TestANilWatchErrorHandlerIsTheDefault(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		require.NoError(k, i.SetWatchErrorHandlerWithContext(nil))
		k.Fail("watch", "pods", 1, 403)
		start(k, i)
		k.Pass(time.Minute)
		require.True(k, i.HasSynced())
	})
}

func TestTransform(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		calls := 0
		require.NoError(k, i.SetTransform(func(obj any) (any, error) {
			calls++
			p := obj.(*corev1.Pod)
			switch {
			case p.Name == "bad":
				return nil, errors.New("no")
			case p.Name == "wrong":
				return &corev1.Node{}, nil
			case p.Name == "panics":
				panic("no")
			}
			p.Name, p.UID = strings.ToUpper(p.Name), "" // it changes the identity
			return p, nil
		}))
		var r recorder
		mustAdd(k.T, i, &r)
		start(k, i)
		require.Equal(k, []string{"add A initial=true", "add B initial=true"}, r.take())
		require.Equal(k, 2, calls, "once for each state")
		testkit.Edit(k, pods, key("a"), func(p *corev1.Pod) { p.Labels["app"] = "shop" })
		for _, name := range []string{"bad", "wrong", "panics"} {
			testkit.Create(k, pods, pod(name))
		}
		testkit.Delete(k, pods, key("b"))
		k.Idle()
		require.Equal(k, []string{"delete B", "update A"}, r.take())
		require.Equal(k, []string{"default/A"}, keys(i.GetStore()))
		status := i.(interface{ Status() informer.Status }).Status()
		require.Equal(k, 3, status.Undecodable)
		k.LoseEvents(func() { testkit.Delete(k, pods, key("a")) })
		require.Equal(k, []string{"tombstone default/A A"}, r.take())
	})
}

// A relist reuses objects, which were transformed when they were new.
func TestTransformSkipsWhatIsReused(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		o := clientgo.Options[*corev1.Pod]{}
		calls := 0
		o.Transform = func(p *corev1.Pod) (*corev1.Pod, error) {
			calls++
			p.Spec.NodeName += "x"
			return p, nil
		}
		i := newInformer(k, o)
		start(k, i)
		require.Equal(k, 2, calls)
		k.LoseEvents(func() { testkit.Create(k, pods, pod("c")) })
		require.Equal(k, 3, calls)
		for _, obj := range i.GetStore().List() {
			require.Equal(k, "x", obj.(*corev1.Pod).Spec.NodeName)
		}
	})
}

func TestPacked(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		o := clientgo.Options[*corev1.Pod]{Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}}
		o.Hold = packed.Bytes[*corev1.Pod]()
		i := newInformer(k, o)
		require.NoError(k, i.SetTransform(func(obj any) (any, error) {
			obj.(*corev1.Pod).Spec.NodeName = "n"
			return obj, nil
		}))
		var r recorder
		mustAdd(k.T, i, &r)
		require.ErrorContains(k, i.SetTransform(func(obj any) (any, error) { return obj, nil }), "Options.Hold")
		start(k, i)
		require.Equal(k, []string{"add a initial=true", "add b initial=true"}, r.take())
		first, exists, err := i.GetStore().GetByKey("default/a")
		require.NoError(k, err)
		require.True(k, exists)
		require.Equal(k, "n", first.(*corev1.Pod).Spec.NodeName)
		second, _, _ := i.GetStore().GetByKey("default/a")
		require.NotSame(k, first, second, "each reader gets a copy")
		inNamespace := must.Get(i.GetIndexer().ByIndex(cache.NamespaceIndex, "default"))(k)
		require.Len(k, inNamespace, 2)
		require.ErrorContains(k, i.GetStore().Add(pod("c")), "Options.Hold")
	})
}

func TestPanicsAreThoseOfClientGo(t *testing.T) {
	really := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash = really }()
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		calls := 0
		handle := mustAdd(k.T, i, cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			calls++
			panic("broken")
		}})
		start(k, i)
		require.Equal(k, 2, calls)
		require.True(k, handle.HasSynced())
	})
}

func TestOptionsThatCannotBeHonoured(t *testing.T) {
	name := must.Get(cache.NewInformerName("test-refused"))(t)
	defer name.Release()
	lw := &cache.ListWatch{}
	o := cache.SharedIndexInformerOptions{Identifier: name.WithResource(pods.GroupVersionResource())}
	require.PanicsWithValue(t, "clientgo: SharedIndexInformerOptions.Identifier and InformerMetricsProvider ask for client-go's metrics, "+
		"which leat does not have; register the informer with leat's package metrics instead", func() {
		clientgo.NewSharedIndexInformerWithOptions(lw, &corev1.Pod{}, o)
	})
}

// Concurrent use of everything, for the race detector.
func TestConcurrentUse(t *testing.T) {
	run(t, func(k *testkit.Kit) {
		i := newInformer(k, clientgo.Options[*corev1.Pod]{})
		start(k, i)
		done := make(chan struct{})
		for n := range 4 {
			go func() {
				defer func() { done <- struct{}{} }()
				for j := range 20 {
					r := mustAdd(t, i, &recorder{})
					_ = i.AddIndexers(cache.Indexers{fmt.Sprint(n, j): cache.MetaNamespaceIndexFunc})
					_, _ = i.GetIndexer().ByIndex(fmt.Sprint(n, j), "default")
					_ = i.GetStore().Update(pod(fmt.Sprint("p", n)))
					_ = i.RemoveEventHandler(r)
					i.GetStore().List()
				}
			}()
		}
		for n := range 20 {
			testkit.Create(k, pods, pod(fmt.Sprint("c", n)))
		}
		for range 4 {
			<-done
		}
		synctest.Wait()
		require.Len(k, i.GetStore().List(), 2+20+4)
	})
}
