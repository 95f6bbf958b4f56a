package cachedclient_test

import (
	"context"
	"encoding/json"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver/faults"
)

var _ controller.Gate[api.Key] = (*cachedclient.Gate)(nil)

// readyCall is the result of a call of Gate.Ready.
type readyCall struct {
	ready bool
	calls atomic.Int32 // the number of calls of again
}

func callReady(g *cachedclient.Gate, key api.Key) *readyCall {
	a := &readyCall{}
	a.ready = g.Ready(key, func() { a.calls.Add(1) })
	return a
}

func mustMerge(t testing.TB, v any) apiclient.Patch {
	return must.Get(apiclient.MergePatch(v))(t)
}

// TestGateWaitsForEveryKindOfWrite makes one write while the informer gets no events. The next reconcile of this key
// waits until the informer gets them, and not until the timeout. Another key does not wait.
func TestGateWaitsForEveryKindOfWrite(t *testing.T) {
	held := named("alpha", 1)
	held.Finalizers = []string{"leat.test/hold"}
	for _, tc := range []struct {
		name  string
		have  *widget
		write func(ctx context.Context, r *rig) error
		shows func(w *widget, found bool) bool
	}{
		{"create", nil, func(ctx context.Context, r *rig) error {
			return must.Err(r.widgets.Create(ctx, named("alpha", 2), metav1.CreateOptions{}))
		}, func(w *widget, found bool) bool { return found && w.Spec.Size == 2 }},
		{"update", named("alpha", 1), func(ctx context.Context, r *rig) error {
			w := r.get(alpha)
			w.Spec.Size = 2
			_, err := r.widgets.Update(ctx, w, metav1.UpdateOptions{})
			return err
		}, func(w *widget, found bool) bool { return found && w.Spec.Size == 2 }},
		{"update of the status", named("alpha", 1), func(ctx context.Context, r *rig) error {
			w := r.get(alpha)
			w.Status.Ready = 2
			_, err := r.widgets.UpdateStatus(ctx, w, metav1.UpdateOptions{})
			return err
		}, func(w *widget, found bool) bool { return found && w.Status.Ready == 2 }},
		{"patch", named("alpha", 1), func(ctx context.Context, r *rig) error {
			return must.Err(r.widgets.Patch(ctx, alpha, mustMerge(r, map[string]any{"spec": map[string]any{"size": 2}}), apiclient.PatchOptions{}))
		}, func(w *widget, found bool) bool { return found && w.Spec.Size == 2 }},
		{"apply", nil, func(ctx context.Context, r *rig) error {
			o := apiclient.ApplyOptions{FieldManager: "test"}
			_, err := r.widgets.Apply(ctx, alpha, map[string]any{"spec": map[string]any{"size": 2}}, o)
			return err
		}, func(w *widget, found bool) bool { return found && w.Spec.Size == 2 }},
		{"delete", named("alpha", 1), func(ctx context.Context, r *rig) error {
			return r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{})
		}, func(_ *widget, found bool) bool { return !found }},
		{"delete with a finalizer", held, func(ctx context.Context, r *rig) error {
			return r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{})
		}, func(w *widget, found bool) bool { return found && w.DeletionTimestamp != nil }},
		{"delete of the collection", named("alpha", 1), func(ctx context.Context, r *rig) error {
			return r.widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}, func(_ *widget, found bool) bool { return !found }},
		{"delete of the collection, with a finalizer", held, func(ctx context.Context, r *rig) error {
			return r.widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=alpha"})
		}, func(w *widget, found bool) bool { return found && w.DeletionTimestamp != nil }},
		{"delete of the collection, and removal of the finalizer", held, func(ctx context.Context, r *rig) error {
			err := r.widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
			w := r.get(alpha)
			_, errPatch := r.widgets.Patch(ctx, alpha, mustMerge(r, map[string]any{"metadata": map[string]any{"finalizers": nil, "uid": w.UID}}), patchOptions)
			return errors.Join(err, errPatch)
		}, func(_ *widget, found bool) bool { return !found }},
		{"update, and delete of the collection", named("alpha", 1), func(ctx context.Context, r *rig) error {
			_, err := r.widgets.Patch(ctx, alpha, mustMerge(r, map[string]any{"spec": map[string]any{"size": 2}}), patchOptions)
			return errors.Join(err, r.widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		}, func(_ *widget, found bool) bool { return !found }},
		{"create and delete", nil, func(ctx context.Context, r *rig) error {
			_, err := r.widgets.Create(ctx, named("alpha", 2), metav1.CreateOptions{})
			return errors.Join(err, r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{}))
		}, func(_ *widget, found bool) bool { return !found }},
		{"delete and create", named("alpha", 1), func(ctx context.Context, r *rig) error {
			err := r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{})
			_, errCreate := r.widgets.Create(ctx, named("alpha", 2), metav1.CreateOptions{})
			return errors.Join(err, errCreate)
		}, func(w *widget, found bool) bool { return found && w.Spec.Size == 2 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := setting{live: "default"}
			if tc.have != nil {
				s.have = []*widget{api.Clone(tc.have)}
			}
			bubble(t, s, func(r *rig) {
				g := cachedclient.NewGate(cachedclient.GateOptions{})
				resume := r.stallEvents()
				require.NoError(r, tc.write(g.Begin(r.Context(), owner), r))
				began := time.Now()
				a := callReady(g, owner)
				require.False(r, a.ready)
				require.True(r, callReady(g, api.Key{Namespace: "default", Name: "another"}).ready)
				require.Equal(r, cachedclient.GateStats{Keys: 1, Waiting: 1}, g.Stats())
				<-time.After(4 * time.Second)
				require.Zero(r, a.calls.Load())

				resume()
				require.EqualValues(r, 1, a.calls.Load())
				require.Equal(r, 4*time.Second, time.Since(began))
				w, found := r.informer.Cache().Get(alpha)
				require.True(r, tc.shows(w, found))
				require.True(r, callReady(g, owner).ready)
				require.Equal(r, cachedclient.GateStats{Waits: 1}, g.Stats())
				require.Zero(r, cachedclient.Waiters(&r.widgets.Partial))
				<-time.After(time.Minute)
				require.EqualValues(r, 1, a.calls.Load(), "again is called once")
			})
		})
	}
}

func TestGateDoesNotWaitWithoutReason(t *testing.T) {
	labelled := named("alpha", 1)
	labelled.Labels = map[string]string{"app": "other"}
	onNode := named("alpha", 1)
	onNode.Spec.Node = "n2"
	elsewhere := named("alpha", 1)
	elsewhere.Namespace = "elsewhere"
	for _, tc := range []struct {
		name  string
		s     setting
		write func(ctx context.Context, r *rig) error
	}{
		{"another namespace", setting{namespace: "default"}, creates(elsewhere)},
		{"other labels", setting{informer: informer.Options[*widget]{Selector: api.Selector{Labels: "app=web"}}}, creates(labelled)},
		{"no labels", setting{informer: informer.Options[*widget]{Selector: api.Selector{Labels: "app"}}}, creates(named("alpha", 1))},
		{"another node", setting{informer: informer.Options[*widget]{Selector: api.Selector{Fields: "spec.node=n1"}}}, creates(onNode)},
		{"no node", setting{informer: informer.Options[*widget]{Selector: api.Selector{Fields: "spec.node=n1"}}}, creates(named("alpha", 1))},
		{"the excluded node", setting{informer: informer.Options[*widget]{Selector: api.Selector{Fields: "spec.node!=n2"}}}, creates(onNode)},
		{"another name", setting{informer: informer.Options[*widget]{Selector: api.Selector{Fields: "metadata.name=beta"}}}, creates(onNode)},
		{"dry run", setting{have: []*widget{named("alpha", 1)}}, func(ctx context.Context, r *rig) error {
			dry := []string{metav1.DryRunAll}
			w := r.get(alpha)
			w.Spec.Size = 2
			_, errUpdate := r.widgets.Update(ctx, w, metav1.UpdateOptions{DryRun: dry})
			_, errCreate := r.widgets.Create(ctx, named("beta", 1), metav1.CreateOptions{DryRun: dry})
			_, errPatch := r.widgets.Patch(ctx, alpha, mustMerge(r, map[string]any{"spec": nil}), apiclient.PatchOptions{DryRun: dry})
			return errors.Join(errUpdate, errCreate, errPatch, r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{DryRun: dry}))
		}},
		{"delete of a collection without cached objects", setting{have: []*widget{named("alpha", 1), elsewhere}}, func(ctx context.Context, r *rig) error {
			here := cachedclient.NewTyped(apiclient.NewTyped[*widget](r.live.Client(), widgets, "default"), r.informer, cachedclient.Options{})
			all := func(o metav1.DeleteOptions, selectors ...string) error {
				return here.DeleteCollection(ctx, o, metav1.ListOptions{LabelSelector: selectors[0], FieldSelector: selectors[1]})
			}
			there := cachedclient.NewTyped(apiclient.NewTyped[*widget](r.live.Client(), widgets, "there"), r.informer, cachedclient.Options{})
			require.NoError(r, there.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
			return errors.Join(all(metav1.DeleteOptions{}, "app=web", ""), all(metav1.DeleteOptions{}, "", "spec.node=n1"),
				all(metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, "", ""))
		}},
		{"a write that fails", setting{have: []*widget{named("alpha", 1)}}, func(ctx context.Context, r *rig) error {
			require.True(r, apierrors.IsAlreadyExists(must.Err(r.widgets.Create(ctx, named("alpha", 2), metav1.CreateOptions{}))))
			w := r.get(alpha)
			w.ResourceVersion = "1"
			require.True(r, apierrors.IsConflict(must.Err(r.widgets.Update(ctx, w, metav1.UpdateOptions{}))))
			uid := types.UID("another")
			require.True(r, apierrors.IsConflict(r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})))
			return nil
		}},
		{"a write that changes nothing", setting{have: []*widget{named("alpha", 1)}}, func(ctx context.Context, r *rig) error {
			return must.Err(r.widgets.Patch(ctx, alpha, mustMerge(r, map[string]any{}), apiclient.PatchOptions{}))
		}},
		{"a context without a gate", setting{}, func(_ context.Context, r *rig) error {
			return creates(named("alpha", 1))(r.Context(), r)
		}},
		{"an object without a version", setting{}, func(ctx context.Context, r *rig) error {
			r.widgets.Wrote(ctx, at("u1", "", 1))
			return nil
		}},
		{"no cache", setting{}, func(ctx context.Context, r *rig) error {
			return must.Err(cachedclient.NewTyped(r.live, nil, cachedclient.Options{}).Create(ctx, named("alpha", 1), metav1.CreateOptions{}))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, tc.s, func(r *rig) {
				g := cachedclient.NewGate(cachedclient.GateOptions{})
				r.stallEvents()
				require.NoError(r, tc.write(g.Begin(r.Context(), owner), r))
				require.True(r, callReady(g, owner).ready)
				require.Zero(r, g.Stats())
			})
		})
	}
}

func creates(w *widget) func(context.Context, *rig) error {
	return func(ctx context.Context, r *rig) error {
		return must.Err(r.widgets.Create(ctx, w, metav1.CreateOptions{}))
	}
}

// TestGateWaitsForObjectsThatLeaveTheSelection removes the label that the informer selects. The next reconcile must not
// read the object any more, whether or not the cache had it before.
func TestGateWaitsForObjectsThatLeaveTheSelection(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprint("known=", known), func(t *testing.T) {
			bubble(t, setting{informer: informer.Options[*widget]{Selector: api.Selector{Labels: "app"}}}, func(r *rig) {
				g := cachedclient.NewGate(cachedclient.GateOptions{})
				ctx := g.Begin(r.Context(), owner)
				w := named("alpha", 1)
				w.Labels = map[string]string{"app": "web"}
				if known {
					require.NoError(r, creates(w)(r.Context(), r))
					synctest.Wait()
				}
				resume := r.stallEvents()
				if !known {
					require.NoError(r, creates(w)(ctx, r))
				}
				must.Get(r.widgets.Patch(ctx, alpha, mustMerge(r, map[string]any{"metadata": map[string]any{"labels": nil}}), apiclient.PatchOptions{}))(r)
				a := callReady(g, owner)
				require.False(r, a.ready)
				resume()
				require.EqualValues(r, 1, a.calls.Load())
				require.Zero(r, r.informer.Cache().Len())
			})
		})
	}
}

// TestGateTimeout checks that a timeout is counted and logged, and that the gate forgets the write.
func TestGateTimeout(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		core, logs := observer.New(zapcore.InfoLevel)
		var waits []cachedclient.GateWait
		g := cachedclient.NewGate(cachedclient.GateOptions{
			Timeout: 2 * time.Second, Logger: zap.New(core), OnWait: func(w cachedclient.GateWait) { waits = append(waits, w) },
		})
		r.stallEvents()
		ctx := g.Begin(r.Context(), owner)
		require.NoError(r, creates(named("alpha", 1))(ctx, r))
		a := callReady(g, owner)
		fixture.Pass(2*time.Second - 1)
		require.Zero(r, a.calls.Load())
		fixture.Pass(1)
		require.EqualValues(r, 1, a.calls.Load())
		require.Equal(r, cachedclient.GateStats{Waits: 1, TimedOut: 1}, g.Stats())
		require.Equal(r, []cachedclient.GateWait{{Key: owner, Took: 2 * time.Second, TimedOut: true}}, waits)
		require.Equal(r, 1, logs.Len())
		require.Equal(r, "widgets.leat.test", logs.All()[0].ContextMap()["resource"])
		require.Equal(r, "default/alpha", logs.All()[0].ContextMap()["object"])
		require.Equal(r, "default/owner", logs.All()[0].ContextMap()["key"])
		require.True(r, callReady(g, owner).ready)
	})
}

// TestGateLogsWithoutItsLock: a logger is foreign code, and may ask the gate.
func TestGateLogsWithoutItsLock(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		var g *cachedclient.Gate
		var stats []cachedclient.GateStats
		core, _ := observer.New(zapcore.InfoLevel)
		log := zap.New(core, zap.Hooks(func(zapcore.Entry) error {
			stats = append(stats, g.Stats())
			return nil
		}))
		g = cachedclient.NewGate(cachedclient.GateOptions{Timeout: time.Second, Logger: log})
		r.stallEvents()
		require.NoError(r, creates(named("alpha", 1))(g.Begin(r.Context(), owner), r))
		callReady(g, owner)
		fixture.Pass(time.Second)
		require.Equal(r, []cachedclient.GateStats{{Waits: 1, TimedOut: 1}}, stats)
	})
}

// TestGateDoesNotWaitForABatch keeps the informer busy with a batch. The first wait of the gate, and its other methods,
// return at once.
func TestGateDoesNotWaitForABatch(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		var busy atomic.Bool
		entered, leave := make(chan struct{}), make(chan struct{})
		informer.AddIndex(r.informer, func(*widget) []int {
			if busy.CompareAndSwap(true, false) {
				close(entered)
				<-leave
			}
			return nil
		})
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		stall := r.Server.Inject(faults.Fault{Effect: faults.StallEvents{}})
		require.NoError(r, creates(named("alpha", 1))(g.Begin(r.Context(), owner), r))
		busy.Store(true)
		stall.Remove()
		<-entered
		a := callReady(g, owner)
		require.False(r, a.ready)
		require.Equal(r, 1, g.Stats().Keys)
		require.True(r, g.Ready(alpha, nil))
		close(leave)
		synctest.Wait()
		require.EqualValues(r, 1, a.calls.Load())
	})
}

// TestGateNoticesABookmark brings the cache up to a write with a bookmark, which is no change of an object.
func TestGateNoticesABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed("10")
		c := clientOf(t, f, cachedclient.Options{})
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		c.Wrote(g.Begin(t.Context(), owner), at("u1", "12", 1))
		a := callReady(g, owner)
		require.False(t, a.ready)
		f.send(watch.Bookmark, at("", "12", 0))
		synctest.Wait()
		require.EqualValues(t, 1, a.calls.Load())
		require.Equal(t, cachedclient.GateStats{Waits: 1}, g.Stats())
	})
}

// TestGateAndForeignWrites writes an object at version 12 and then sends one event. ready says whether it ends the
// wait.
func TestGateAndForeignWrites(t *testing.T) {
	for _, tc := range []struct {
		name   string
		event  watch.EventType
		object *widget
		ready  bool
	}{
		{"the write itself", watch.Modified, at("u1", "12", 2), true},
		{"an older state", watch.Modified, at("u1", "11", 2), false},
		{"a newer state", watch.Modified, at("u1", "13", 3), true},
		{"a newer delete", watch.Deleted, at("u1", "13", 3), true},
		{"a new object of the same name", watch.Added, at("u2", "14", 3), true},
		{"an older state of another object", watch.Added, func() *widget { w := at("u9", "11", 1); w.Name = "beta"; return w }(), false},
		// The version of the cached object counts, not the version of the cache: the event of the write may have been
		// one that could not be decoded.
		{"a newer state of another object", watch.Added, func() *widget { w := at("u9", "13", 1); w.Name = "beta"; return w }(), false},
	} {
		fixture.Bubble(t, tc.name, func(t *testing.T) {
			f := newFeed("10", at("u1", "10", 1))
			c := clientOf(t, f, cachedclient.Options{})
			g := cachedclient.NewGate(cachedclient.GateOptions{})
			c.Wrote(g.Begin(t.Context(), owner), at("u1", "12", 2))
			a := callReady(g, owner)
			require.False(t, a.ready)
			f.send(tc.event, tc.object)
			require.Equal(t, tc.ready, a.calls.Load() == 1)
			require.Equal(t, tc.ready, callReady(g, owner).ready)
		})
	}
}

func TestGateAndVersionsWithoutOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed("a", at("u1", "a", 1))
		c := clientOf(t, f, cachedclient.Options{Overlay: true})
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		c.Wrote(g.Begin(t.Context(), owner), at("u1", "c", 3))
		a := callReady(g, owner)
		require.False(t, a.ready)
		require.EqualValues(t, 1, must.Get(c.Get(t.Context(), alpha))(t).Spec.Size, "an overlay ignores versions without an order")
		f.send(watch.Modified, at("u1", "b", 2))
		require.Zero(t, a.calls.Load())
		f.send(watch.Modified, at("u1", "c", 3))
		require.EqualValues(t, 1, a.calls.Load())
	})
}

// TestGateAfterARestore restores the server to a state from before the write. The cache will never show the write.
func TestGateAfterARestore(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}, client: cachedclient.Options{Overlay: true, OverlayAge: time.Hour}}, func(r *rig) {
		before := r.Server.Snapshot()
		for range 3 {
			r.Edit(widgets, alpha, setSize(7))
		}
		synctest.Wait()
		g := cachedclient.NewGate(cachedclient.GateOptions{Timeout: time.Hour})
		resume := r.stallEvents()
		require.NoError(r, creates(named("beta", 1))(g.Begin(r.Context(), owner), r))
		a := callReady(g, owner)
		require.False(r, a.ready)
		beta := api.Key{Namespace: "default", Name: "beta"}
		require.EqualValues(r, 1, r.get(beta).Spec.Size)
		require.EqualValues(r, 7, r.get(alpha).Spec.Size)

		r.Server.Inject(faults.Fault{Effect: faults.Restore{To: before}})
		resume()
		<-time.After(11 * time.Minute) // a watch from a version that the restored server lacks stays silent, at most 10 minutes
		require.EqualValues(r, 1, r.get(alpha).Spec.Size)
		require.EqualValues(r, 1, a.calls.Load())
		require.Zero(r, g.Stats().TimedOut)
		require.True(r, apierrors.IsNotFound(must.Err(r.widgets.Get(r.Context(), beta))))
	})
}

// TestGateOfAnInformerThatStopsLater stops the informer after the gate has subscribed to it. The gate does not wait.
func TestGateOfAnInformerThatStopsLater(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(r.Context(), owner)
		resume := r.stallEvents()
		require.NoError(r, creates(named("alpha", 1))(ctx, r))
		require.False(r, callReady(g, owner).ready)
		resume()
		r.stallEvents()
		require.NoError(r, creates(named("beta", 1))(ctx, r))
		r.stop()
		require.True(r, callReady(g, owner).ready)
	})
}

// TestGateOfAnInformerBeforeItsFirstList deletes an object that the informer's first list still contains.
func TestGateOfAnInformerBeforeItsFirstList(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		w := r.get(alpha)
		f := newFeed(w.ResourceVersion, w)
		i := informer.New(f, informer.Options[*widget]{Tuning: reflector.Tuning{NoWatchList: true}})
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		require.NoError(r, cachedclient.NewTyped(r.live, i, cachedclient.Options{}).Delete(g.Begin(r.Context(), owner), alpha, metav1.DeleteOptions{}))
		a := callReady(g, owner)
		require.False(r, a.ready)
		r.Start(i.Run)
		synctest.Wait()
		require.Zero(r, a.calls.Load(), "the list is older than the delete")
		gone := api.Clone(w)
		gone.ResourceVersion = "999"
		f.send(watch.Deleted, gone)
		require.EqualValues(r, 1, a.calls.Load())
		require.Zero(r, g.Stats().TimedOut)
	})
}

// TestGateOfAStoppedInformer stops the informer before the gate subscribes to it. The gate does not wait.
func TestGateOfAStoppedInformer(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		r.stallEvents()
		require.NoError(r, creates(named("alpha", 1))(g.Begin(r.Context(), owner), r))
		r.stop()
		require.True(r, callReady(g, owner).ready)
	})
}

// TestDeleteCollectionOfPartialObjects deletes a collection with a T that declares no deletion timestamp. The overlay
// has one of the objects; the cache does not.
func TestDeleteCollectionOfPartialObjects(t *testing.T) {
	held := named("alpha", 1)
	held.Finalizers = []string{"leat.test/hold"}
	bubble(t, setting{have: []*widget{held, named("beta", 1)}}, func(r *rig) {
		live := apiclient.NewPartial[*minimal](r.live.Client(), widgets, "default")
		i := informer.New(live, informer.Options[*minimal]{})
		r.Start(i.Run)
		<-i.Synced()
		parts := cachedclient.NewPartial(live, i, cachedclient.Options{Overlay: true})
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(r.Context(), owner)
		resume := r.stallEvents()
		_, err := parts.Apply(ctx, api.Key{Namespace: "default", Name: "gamma"}, map[string]any{},
			apiclient.ApplyOptions{FieldManager: "test"})
		require.NoError(r, err)
		require.NoError(r, parts.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		a := callReady(g, owner)
		require.False(r, a.ready)
		resume()
		require.EqualValues(r, 1, a.calls.Load())
		require.Equal(r, 1, i.Cache().Len(), "the object with a finalizer is still cached, in a newer version")
		require.Zero(r, g.Stats().TimedOut)

		resume = r.stallEvents()
		must.Get(r.widgets.Patch(r.Context(), alpha, mustMerge(r, map[string]any{"metadata": map[string]any{"finalizers": nil}}), patchOptions))(r)
		require.NoError(r, parts.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		require.False(r, callReady(g, owner).ready, "the cached version is the one from before the delete")
		resume()
		require.Zero(r, i.Cache().Len())

		forbidden := r.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"deletecollection"}}, Effect: faults.Fail{Code: 403}})
		require.True(r, apierrors.IsForbidden(parts.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})))
		require.Equal(r, 1, forbidden.Seen())
		require.True(r, callReady(g, owner).ready, "nothing was deleted")
	})
}

// TestGateWaitsForEveryWriteOfAnObject makes two writes to an object. The informer gets the event of the first one
// only.
func TestGateWaitsForEveryWriteOfAnObject(t *testing.T) {
	deleteAll := func(ctx context.Context, r *rig) error {
		return r.widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	change := func(metadata map[string]any) func(context.Context, *rig) error {
		return func(ctx context.Context, r *rig) error {
			return must.Err(r.widgets.Patch(ctx, alpha, mustMerge(r, map[string]any{"metadata": metadata}), patchOptions))
		}
	}
	for name, c := range map[string]struct {
		finalizers    []string
		first, second func(context.Context, *rig) error
	}{
		"deleted with the collection, finalizer removed": {[]string{"leat.test/hold"}, deleteAll, change(map[string]any{"finalizers": nil})},
		"changed, deleted with the collection":           {nil, change(map[string]any{"labels": map[string]string{"a": "b"}}), deleteAll},
		"changed, deleted": {nil, change(map[string]any{"labels": map[string]string{"a": "b"}}), func(ctx context.Context, r *rig) error {
			return r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := named("alpha", 1)
			w.Finalizers = c.finalizers
			bubble(t, setting{live: "default", have: []*widget{w}}, func(r *rig) {
				g := cachedclient.NewGate(cachedclient.GateOptions{})
				ctx := g.Begin(r.Context(), owner)
				deletions := faults.Match{Frames: []watch.EventType{watch.Deleted}}
				late := r.Server.Inject(faults.Fault{Match: deletions, Effect: faults.StallEvents{}})
				require.NoError(r, c.first(ctx, r))
				synctest.Wait()
				require.NoError(r, c.second(ctx, r))
				synctest.Wait()
				a := callReady(g, owner)
				require.False(r, a.ready)
				late.Remove()
				synctest.Wait()
				require.EqualValues(r, 1, a.calls.Load())
				require.Zero(r, r.informer.Cache().Len())
			})
		})
	}
}

// minimal declares only the required fields.
type minimal struct {
	Metadata struct {
		Namespace       string    `json:"namespace"`
		Name            string    `json:"name"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
}

func (n *minimal) GetNamespace() string       { return n.Metadata.Namespace }
func (n *minimal) GetName() string            { return n.Metadata.Name }
func (n *minimal) GetUID() types.UID          { return n.Metadata.UID }
func (n *minimal) GetResourceVersion() string { return n.Metadata.ResourceVersion }

func TestGateCallsEveryWaiter(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(r.Context(), owner)
		resume := r.stallEvents()
		require.NoError(r, creates(named("alpha", 1))(ctx, r))
		first := callReady(g, owner)
		require.NoError(r, creates(named("beta", 1))(ctx, r))
		second := callReady(g, owner)
		require.False(r, first.ready || second.ready)
		resume()
		require.EqualValues(r, 1, first.calls.Load())
		require.EqualValues(r, 1, second.calls.Load())
		require.Equal(r, 2, r.informer.Cache().Len())
	})
}

// TestGateForgetsSeenWrites writes for 300 keys that are never reconciled again.
func TestGateForgetsSeenWrites(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		for i := range 300 {
			key := api.Key{Namespace: "default", Name: fmt.Sprint("gone-", i)}
			require.NoError(r, creates(named(key.Name, 1))(g.Begin(r.Context(), key), r))
			synctest.Wait()
		}
		require.Less(r, g.Stats().Keys, 100)
	})
}

// TestAnswersInTheWrongOrder records the older one of two writes last.
func TestAnswersInTheWrongOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed("10", at("u1", "10", 1))
		c := clientOf(t, f, cachedclient.Options{Overlay: true})
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(t.Context(), owner)
		c.Wrote(ctx, at("u1", "12", 2))
		c.Wrote(ctx, at("u1", "11", 1))
		a := callReady(g, owner)
		f.send(watch.Modified, at("u1", "11", 1))
		require.Zero(t, a.calls.Load())
		require.EqualValues(t, 2, must.Get(c.Get(t.Context(), alpha))(t).Spec.Size)
		f.send(watch.Modified, at("u1", "12", 2))
		require.EqualValues(t, 1, a.calls.Load())
	})
}

// TestWritesAfterADelete records an update after the delete that followed it. The gate waits for the delete, not for
// the update.
func TestWritesAfterADelete(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(r.Context(), owner)
		deletions := faults.Match{Frames: []watch.EventType{watch.Deleted}}
		late := r.Server.Inject(faults.Fault{Match: deletions, Effect: faults.StallEvents{}})
		w := must.Get(r.widgets.Patch(r.Context(), alpha, mustMerge(r, map[string]any{"spec": map[string]any{"size": 2}}), patchOptions))(r)
		require.NoError(r, r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{}))
		r.widgets.Wrote(ctx, w)
		synctest.Wait()
		require.EqualValues(r, 2, r.get(alpha).Spec.Size)
		require.False(r, callReady(g, owner).ready)
		late.Remove()
		synctest.Wait()
		require.True(r, callReady(g, owner).ready)
	})
}

// TestDeletesOfTwoObjectsOfOneName deletes an object, and then another one that has the same name.
func TestDeletesOfTwoObjectsOfOneName(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(r.Context(), owner)
		resume := r.stallEvents()
		require.NoError(r, r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{}))
		r.Create(widgets, named("alpha", 2))
		require.NoError(r, r.widgets.Delete(ctx, alpha, metav1.DeleteOptions{}))
		a := callReady(g, owner)
		require.False(r, a.ready, "the cache still has the first object")
		resume()
		require.EqualValues(r, 1, a.calls.Load())
		require.Zero(r, r.informer.Cache().Len())
	})
}

// TestGateOfSeveralCaches waits for two caches. The write to the second one is recorded while a caller waits.
func TestGateOfSeveralCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := newFeed("10"), newFeed("20")
		first, second := clientOf(t, one, cachedclient.Options{}), clientOf(t, other, cachedclient.Options{})
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(t.Context(), owner)
		first.Wrote(ctx, at("u1", "12", 1))
		a := callReady(g, owner)
		second.Wrote(ctx, at("u2", "22", 1))
		one.send(watch.Added, at("u1", "12", 1))
		require.Zero(t, a.calls.Load())
		other.send(watch.Added, at("u2", "22", 1))
		require.EqualValues(t, 1, a.calls.Load())
	})
}

func TestDeleteAnswersWithoutUID(t *testing.T) {
	for _, precondition := range []bool{false, true} {
		bubble(t, setting{have: []*widget{named("alpha", 1)}, client: overlaid}, func(r *rig) {
			r.answer("delete", successWithoutUID)
			g := cachedclient.NewGate(cachedclient.GateOptions{})
			o := metav1.DeleteOptions{}
			if precondition {
				uid := r.get(alpha).UID
				o.Preconditions = &metav1.Preconditions{UID: &uid}
			}
			require.NoError(r, r.widgets.Delete(g.Begin(r.Context(), owner), alpha, o))
			require.False(r, callReady(g, owner).ready)
			require.True(r, apierrors.IsNotFound(must.Err(r.widgets.Get(r.Context(), alpha))))
		})
	}
}

// TestDeletesOfObjectsThatTheCacheLacks deletes an object that another client has created. If the answer contains the
// object, as that of a pod does, the gate waits until the cache has reached its version. An answer that does not
// identify the object is no reason to wait.
func TestDeletesOfObjectsThatTheCacheLacks(t *testing.T) {
	for _, identified := range []bool{true, false} {
		t.Run(fmt.Sprint("identified=", identified), func(t *testing.T) {
			bubble(t, setting{client: overlaid}, func(r *rig) {
				g := cachedclient.NewGate(cachedclient.GateOptions{})
				resume := r.stallEvents()
				created := r.Create(widgets, named("alpha", 1))
				r.Delete(widgets, alpha)
				body := []byte(successWithoutUID)
				if identified {
					body = must.Get(json.Marshal(at(string(created.GetUID()), r.Server.ResourceVersion(), 1)))(r)
				}
				r.answer("delete", string(body))
				rv := created.GetResourceVersion()
				o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &rv}}
				require.NoError(r, r.widgets.Delete(g.Begin(r.Context(), owner), alpha, o))
				a := callReady(g, owner)
				require.Equal(r, !identified, a.ready)
				resume()
				require.Equal(r, identified, a.calls.Load() == 1)
				require.Zero(r, r.informer.Cache().Len())
			})
		})
	}
}

// TestDeleteCollectionDeletesWhatReadsShow deletes collections while the overlay and the cache differ. The gate waits
// for an object that only the overlay has, and not for one whose state in the overlay does not match the selector.
func TestDeleteCollectionDeletesWhatReadsShow(t *testing.T) {
	labelled := named("alpha", 1)
	labelled.Labels = map[string]string{"app": "web"}
	bubble(t, setting{live: "default", client: overlaid, have: []*widget{labelled}}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		ctx := g.Begin(r.Context(), owner)
		resume := r.stallEvents()
		patch := mustMerge(r, map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "other"}}})
		must.Get(r.widgets.Patch(r.Context(), alpha, patch, patchOptions))(r)
		web := metav1.ListOptions{LabelSelector: "app=web"}
		require.NoError(r, r.widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, web))
		require.True(r, callReady(g, owner).ready)

		created := api.Clone(labelled)
		created.Name = "beta"
		require.NoError(r, creates(created)(r.Context(), r))
		require.NoError(r, r.widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, web))
		a := callReady(g, owner)
		require.False(r, a.ready)
		resume()
		require.EqualValues(r, 1, a.calls.Load())
		require.Equal(r, []string{"default/alpha=1"}, r.listed(cachedclient.ListOptions{}))
	})
}

// TestDeleteCollectionWithoutACache deletes on the server, and the gate does not wait.
func TestDeleteCollectionWithoutACache(t *testing.T) {
	bubble(t, setting{live: "default", have: []*widget{named("alpha", 1)}}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		c := cachedclient.NewTyped(r.live, nil, cachedclient.Options{})
		require.NoError(r, c.DeleteCollection(g.Begin(r.Context(), owner), metav1.DeleteOptions{}, metav1.ListOptions{}))
		require.True(r, callReady(g, owner).ready)
		require.True(r, apierrors.IsNotFound(must.Err(r.Server.Get(widgets, alpha))))
	})
}

// TestDryRunsWithANewVersion has a server whose answer to a dry run carries a version that it will never store.
func TestDryRunsWithANewVersion(t *testing.T) {
	bubble(t, setting{have: []*widget{named("alpha", 1)}}, func(r *rig) {
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		body := must.Get(json.Marshal(at("u1", "1000000", 2)))(r)
		r.answer("patch", string(body))
		dry := apiclient.PatchOptions{DryRun: []string{metav1.DryRunAll}}
		w := must.Get(r.widgets.Patch(g.Begin(r.Context(), owner), alpha, mustMerge(r, map[string]any{}), dry))(r)
		require.Equal(r, "1000000", w.ResourceVersion)
		require.True(r, callReady(g, owner).ready)
	})
}

// TestSelectorsOfPartialObjects has an informer with a field selector, and a T that does not declare the field. The
// gate waits for a created object, because the selector may match it.
func TestSelectorsOfPartialObjects(t *testing.T) {
	bubble(t, setting{}, func(r *rig) {
		live := apiclient.NewPartial[*minimal](r.live.Client(), widgets, "")
		i := informer.New(live, informer.Options[*minimal]{Selector: api.Selector{Fields: "spec.node=n1"}})
		r.Start(i.Run)
		<-i.Synced()
		c := cachedclient.NewPartial(live, i, cachedclient.Options{})
		g := cachedclient.NewGate(cachedclient.GateOptions{})
		resume := r.stallEvents()
		_, err := c.Apply(g.Begin(r.Context(), owner), alpha, map[string]any{"spec": map[string]any{"node": "n1"}},
			apiclient.ApplyOptions{FieldManager: "test"})
		require.NoError(r, err)
		a := callReady(g, owner)
		require.False(r, a.ready)
		resume()
		require.EqualValues(r, 1, a.calls.Load())
	})
}

func TestNewerOfTwoVersions(t *testing.T) {
	for _, tc := range [][3]string{{"9", "10", "10"}, {"10", "9", "10"}, {"", "9", "9"}, {"9", "", "9"}, {"x", "y", "x"}, {"", "", ""}} {
		require.Equal(t, tc[2], cachedclient.Newer(tc[0], tc[1]))
	}
}
