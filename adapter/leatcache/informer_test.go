package leatcache_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/leatproject/leat/adapter/leatcache"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/faults"
)

// events is a handler that notes its calls.
type events struct {
	mu    sync.Mutex
	lines []string
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, fmt.Sprintf(format, args...))
}

// take returns the calls since the last time.
func (e *events) take() []string {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := e.lines
	e.lines = nil
	return lines
}

func (e *events) len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.lines)
}

func podOf(o any) string {
	p := o.(*corev1.Pod)
	return p.Namespace + "/" + p.Name
}

func (e *events) OnAdd(o any, initial bool) { e.add("add %s %t", podOf(o), initial) }

func (e *events) OnUpdate(old, o any) {
	e.add("update %s %t", podOf(o), old.(*corev1.Pod).ResourceVersion == o.(*corev1.Pod).ResourceVersion)
}

func (e *events) OnDelete(o any) {
	if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		e.add("tombstone %s %s", unknown.Key, podOf(unknown.Obj))
		return
	}
	e.add("delete %s", podOf(o))
}

// TestHandlers has handlers that come and go, in a cache with one scope and with several.
func TestHandlers(t *testing.T) {
	for name, namespaces := range map[string]map[string]cache.Config{"one scope": nil, "several": {"a": {}, "b": {}, "": {}}} {
		t.Run(name, func(t *testing.T) {
			all(t, func(r *rig, own leatcache.Options) {
				c := r.make(own, cache.Options{DefaultNamespaces: namespaces})
				i, err := c.GetInformer(r.Context(), &corev1.Pod{})
				require.NoError(r, err, "before the start it does not wait")
				early, late := &events{}, &events{}
				before := must.Get(i.AddEventHandler(early))(r)
				require.False(r, i.HasSynced() || before.HasSynced())
				r.start(c)
				require.True(r, c.WaitForCacheSync(r.Context()))
				<-i.HasSyncedChecker().Done()
				<-before.HasSyncedChecker().Done()
				require.True(r, i.HasSynced() && before.HasSynced())
				require.Contains(r, i.HasSyncedChecker().Name(), "pods")
				require.Contains(r, before.HasSyncedChecker().Name(), "*leatcache_test.events")
				initial := []string{"add a/one true", "add a/two true", "add b/one true", "add c/one true"}
				require.ElementsMatch(r, initial, early.take())

				after := must.Get(i.AddEventHandler(late))(r)
				require.ElementsMatch(r, initial, late.take())
				require.True(r, after.HasSynced())

				pod := r.create("a", "new", "web", "")
				pod.Labels["changed"] = "yes"
				require.NoError(r, r.direct.Update(r.Context(), pod))
				require.NoError(r, r.direct.Delete(r.Context(), pod, client.GracePeriodSeconds(0)))
				// The server deletes a pod in two steps.
				want := []string{"add a/new false", "update a/new false", "update a/new false", "delete a/new"}
				require.Equal(r, want, early.take())
				require.Equal(r, want, late.take())

				require.NoError(r, i.RemoveEventHandler(before))
				require.NoError(r, i.RemoveEventHandler(before))
				r.create("c", "other", "web", "n1")
				require.Empty(r, early.take())
				require.Equal(r, []string{"add c/other false"}, late.take())
				require.ErrorContains(r, i.RemoveEventHandler(nil), "is not one of the informer of")
				require.ErrorContains(r, i.AddIndexers(toolscache.Indexers{}), "AddIndexers is not supported")
			})
		})
	}
}

// TestTombstones deletes a pod while the watch is interrupted.
func TestTombstones(t *testing.T) {
	run(t, func(r *rig) {
		pod := r.create("b", "gone", "web", "")
		c := r.cache(cache.Options{})
		i := must.Get(c.GetInformer(r.Context(), &corev1.Pod{}))(r)
		e := &events{}
		must.Get(i.AddEventHandler(e))(r)
		require.Len(r, e.take(), 5)
		r.cluster.Server.Inject(faults.Fault{Match: faults.Match{Resource: "pods", Frames: []watch.EventType{watch.Deleted}}, Times: 1, Effect: faults.Drop{}})
		require.NoError(r, r.direct.Delete(r.Context(), pod, client.GracePeriodSeconds(0)))
		require.Equal(r, []string{"update b/gone false"}, e.take(), "the server deletes a pod in two steps")
		r.cluster.Server.Inject(faults.Fault{Effect: faults.Compact{}})
		r.cluster.Server.Inject(faults.Fault{Effect: faults.Disconnect{}})
		waitFor(r, func() bool { return e.len() > 0 })
		require.Equal(r, []string{"tombstone b/gone b/gone"}, e.take())
	})
}

// TestResync waits for the resyncs of the cache, of a type, and of handlers.
func TestResync(t *testing.T) {
	minute, hour := time.Minute, time.Hour
	run(t, func(r *rig) {
		c := r.make(leatcache.Options{}, cache.Options{SyncPeriod: &hour, ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {SyncPeriod: &minute, Field: nil, Label: app("web")},
		}})
		i := must.Get(c.GetInformer(r.Context(), &corev1.Pod{}))(r)
		own, never, rare := &events{}, &events{}, &events{}
		must.Get(i.AddEventHandler(own))(r)
		must.Get(i.AddEventHandlerWithResyncPeriod(never, 0))(r)
		must.Get(i.AddEventHandlerWithOptions(rare, toolscache.HandlerOptions{ResyncPeriod: &hour}))(r)
		r.start(c)
		require.Len(r, own.take(), 2)
		require.Len(r, never.take(), 2)
		require.Len(r, rare.take(), 2)
		<-time.After(5 * time.Minute)
		require.Contains(r, own.take(), "update a/one true")
		require.Empty(r, never.take())
		require.Empty(r, rare.take())
		<-time.After(2 * time.Hour)
		require.NotEmpty(r, rare.take())
		require.Empty(r, never.take())
	})
}

func TestRemoveInformer(t *testing.T) {
	run(t, func(r *rig) {
		c := r.make(leatcache.Options{}, cache.Options{})
		unstarted := must.Get(c.GetInformer(r.Context(), &corev1.Node{}))(r)
		require.False(r, unstarted.IsStopped())
		require.NoError(r, c.RemoveInformer(r.Context(), &corev1.Node{}))
		require.NoError(r, c.RemoveInformer(r.Context(), &corev1.Node{}))
		require.True(r, unstarted.IsStopped())
		require.ErrorContains(r, must.Err(unstarted.AddEventHandler(&events{})), "the informer of /v1, Kind=Node has ended")

		stop := r.start(c)
		first := must.Get(c.GetInformerForKind(r.Context(), podKind))(r)
		require.NoError(r, c.RemoveInformer(r.Context(), &corev1.Pod{}))
		waitFor(r, first.IsStopped)
		second := must.Get(c.GetInformer(r.Context(), &corev1.Pod{}))(r)
		require.True(r, second.HasSynced())
		require.False(r, second.IsStopped())
		require.Len(r, r.names(c), 4)
		stop()
		require.True(r, second.IsStopped())
		require.ErrorContains(r, must.Err(c.GetInformer(r.Context(), &corev1.Node{})), "has ended")
	})
}

func TestBlockUntilSynced(t *testing.T) {
	run(t, func(r *rig) {
		c := r.cache(cache.Options{})
		r.cluster.Server.Inject(faults.Fault{Match: faults.Match{Resource: "pods"}, Effect: faults.Fail{Code: 500}})
		i := must.Get(c.GetInformer(r.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false)))(r)
		require.False(r, i.HasSynced())
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		_, err := c.GetInformer(ctx, &corev1.Pod{})
		require.True(r, apierrors.IsTimeout(err), "%v", err)
		require.True(r, apierrors.IsTimeout(c.List(ctx, &corev1.PodList{})))
		require.False(r, c.WaitForCacheSync(ctx))
	})
}

func TestStart(t *testing.T) {
	run(t, func(r *rig) {
		c := r.make(leatcache.Options{}, cache.Options{})
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		require.False(r, c.WaitForCacheSync(ctx), "it was not started")
		r.start(c)
		require.True(r, c.WaitForCacheSync(r.Context()))
		require.ErrorContains(r, c.Start(r.Context()), "informer already started")
		require.False(r, c.(*leatcache.Cache).NeedLeaderElection())
	})
}

// TestCheckersEndWithTheCache asks for channels of several scopes that are never closed. What waits for the scopes ends
// with the cache; otherwise the bubble would not end.
func TestCheckersEndWithTheCache(t *testing.T) {
	run(t, func(r *rig) {
		stall := r.cluster.Server.Inject(faults.Fault{Match: faults.Match{Resource: "pods"}, Effect: faults.Stall{}})
		defer stall.Remove()
		ask := func(c cache.Cache) []toolscache.DoneChecker {
			i := must.Get(c.GetInformer(r.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false)))(r)
			handle := must.Get(i.AddEventHandler(&events{}))(r)
			return []toolscache.DoneChecker{i.HasSyncedChecker(), handle.HasSyncedChecker()}
		}
		o := cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}}
		c := r.make(leatcache.Options{}, o)
		checkers := ask(c)
		stop := r.start(c)
		checkers = append(checkers, ask(c)...)
		stop()
		checkers = append(checkers, ask(r.make(leatcache.Options{}, o))...) // it is never started
		synctest.Wait()
		for _, checker := range checkers {
			select {
			case <-checker.Done():
				require.Fail(r, "closed without a list", checker.Name())
			default:
			}
		}
	})
}
