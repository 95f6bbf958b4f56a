package informer_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

func TestTraceOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.set("a", 1)
		src.set("b", 1)
		i := informer.New(src, informer.Options[*widget]{Handling: informer.Handling{ResyncPeriod: time.Minute}})
		subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{}) // is due for the resync
		began := time.Now()
		var seen []informer.TracedBatch
		stop := i.Trace(informer.Trace{Batch: func(b informer.TracedBatch) {
			seen = append(seen, b)
			if _, there := i.Cache().Get(api.Key{Namespace: "default", Name: "c"}); !there {
				require.Len(t, seen, 1, "the batch must be in the cache")
			}
		}})
		defer running(t, i)()
		synctest.Wait()
		<-time.After(30 * time.Second)
		src.set("c", 1)
		synctest.Wait()
		<-time.After(45 * time.Second) // a resync
		synctest.Wait()
		src.bookmark()
		synctest.Wait()
		require.Equal(t, []informer.TracedBatch{
			{Objects: 2, InitialList: true, Received: began},
			{Objects: 1, Received: began.Add(30 * time.Second)},
			{Received: began.Add(time.Minute)},
			{Received: began.Add(75 * time.Second)},
		}, seen)
		stop()
		src.set("d", 1)
		synctest.Wait()
		require.Len(t, seen, 4)
	})
}

// TestObservedTimes holds a change in the DeltaFIFO for a second, and in an index function for two more. A condition of
// WaitUntil holds handleDeltas for ten seconds, when handlers have the change already.
func TestObservedTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.set("a", 1)
		slow := false
		i := informer.New(src, informer.Options[*widget]{})
		i.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) {
			if i.ResourceVersion() == "2" {
				<-time.After(time.Second)
			}
		}})
		informer.AddIndex(i, func(w *widget) []string {
			if slow {
				<-time.After(2 * time.Second)
			}
			return nil
		})
		var seen []informer.TracedChange
		stop := i.Trace(informer.Trace{Change: func(c informer.TracedChange) { seen = append(seen, c) }})
		defer stop()
		defer running(t, i)()
		synctest.Wait()
		go func() {
			_ = i.WaitUntil(t.Context(), func(*cache.Snapshot[*widget]) bool {
				if slow {
					<-time.After(10 * time.Second)
				}
				return false
			})
		}()
		src.set("b", 1)
		synctest.Wait() // its batch waits in the other trace
		slow = true
		came := time.Now()
		src.set("c", 1)
		<-time.After(time.Minute)
		synctest.Wait()
		require.Len(t, seen, 3)
		c := seen[2]
		require.Equal(t, []time.Time{came, came.Add(time.Second), came.Add(3 * time.Second)}, []time.Time{c.At, c.Popped, c.Stored})
	})
}

// TestTraceOfDeliveries has a handler that takes a second, one that panics, and one that joins late.
func TestTraceOfDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.set("a", 1)
		i := informer.New(src, informer.Options[*widget]{Handling: informer.Handling{ResyncPeriod: time.Minute}})
		subscribe(t, i, func(api.Change[*widget]) { <-time.After(time.Second) }, informer.HandlerOptions{Name: "slow"})
		subscribe(t, i, func(api.Change[*widget]) { panic("it breaks") }, informer.HandlerOptions{Name: "breaks"})
		defer running(t, i)()
		<-time.After(10 * time.Second)
		a := api.Key{Namespace: "default", Name: "a"}
		var mu sync.Mutex // each handler has its goroutine
		var seen []informer.Delivery
		stop := i.Trace(informer.Trace{Wanted: func(key api.Key) bool { return key == a }, Delivery: func(d informer.Delivery) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, d)
		}})
		began := time.Now()
		src.set("b", 1)
		src.set("a", 2)
		<-time.After(time.Minute) // with a resync
		again := time.Now()
		src.remove("a")
		<-time.After(10 * time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []informer.Delivery{
			{Handler: "breaks", Type: api.Updated, Key: a, Version: "3", Began: began},
			{Handler: "slow", Type: api.Updated, Key: a, Version: "3", Began: began.Add(time.Second), Took: time.Second},
			{Handler: "breaks", Type: api.Deleted, Key: a, Version: "4", Began: again},
			{Handler: "slow", Type: api.Deleted, Key: a, Version: "4", Began: again, Took: time.Second},
		}, seen)
		stop()
		src.set("a", 3)
		<-time.After(10 * time.Second)
		synctest.Wait()
		require.Len(t, seen, 4)
	})
}

// TestHeardAt checks that HeardAt is the time since which the server has sent nothing.
func TestHeardAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.set("a", 1)
		proceed := make(chan struct{})
		i := informer.New(src, informer.Options[*widget]{Handling: informer.Handling{ResyncPeriod: time.Second}})
		i.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) { <-proceed }})
		require.Zero(t, i.Status().HeardAt)
		subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{}) // is due for every resync
		defer running(t, i)()
		close(proceed)
		for _, something := range []func(){
			func() {}, // the list
			func() { src.set("a", 2) },
			func() { src.bookmark() },
			func() { src.remove("a") },
		} {
			something()
			came := time.Now()
			<-time.After(time.Minute) // resyncs do not count, because they come without the server
			synctest.Wait()
			require.Equal(t, came, i.Status().HeardAt)
		}
	})
}

func TestHeardAtWaitsForTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource()
		src.set("a", 1)
		stuck, calls := make(chan struct{}), 0
		i := informer.New(src, informer.Options[*widget]{})
		i.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) {
			if calls++; calls > 1 {
				<-stuck
			}
		}})
		defer running(t, i)()
		synctest.Wait()
		src.set("a", 2)
		came := time.Now()
		for n := range 3 {
			<-time.After(time.Minute)
			src.set("a", 3+n)
			src.bookmark()
			synctest.Wait()
			require.Equal(t, came, i.Status().HeardAt)
		}
		close(stuck)
		synctest.Wait()
		require.Equal(t, came.Add(3*time.Minute), i.Status().HeardAt)
	})
}

// unversioned is a source without versions, as a fake clientset is. Its list takes a minute.
type unversioned struct{ *source }

func (u unversioned) List(context.Context, api.Options[*widget], func(*widget) error) (metav1.ListMeta, error) {
	<-time.After(time.Minute)
	return metav1.ListMeta{}, nil
}

func (u unversioned) Watch(ctx context.Context, _ api.Options[*widget]) iter.Seq2[api.Event[*widget], error] {
	return func(yield func(api.Event[*widget], error) bool) {
		<-ctx.Done()
		yield(api.Event[*widget]{}, ctx.Err())
	}
}

// TestHeardAtBeforeTheFirstList has a list that was received and is not in the cache, and no versions that tell so.
func TestHeardAtBeforeTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		i := informer.New(unversioned{newSource()}, informer.Options[*widget]{
			Handling: informer.Handling{ResyncPeriod: 10 * time.Second},
			Tuning:   reflector.Tuning{NoWatchList: true},
		})
		i.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) { <-proceed }}) // from the first resync on
		subscribe(t, i, func(api.Change[*widget]) {}, informer.HandlerOptions{})
		began := time.Now()
		defer running(t, i)()
		<-time.After(2 * time.Minute)
		synctest.Wait()
		require.False(t, i.Status().Synced)
		require.NotZero(t, i.Status().Reflector.CaughtUpAt)
		require.Zero(t, i.Status().HeardAt)
		close(proceed)
		synctest.Wait()
		require.True(t, i.Status().Synced)
		require.Equal(t, began.Add(time.Minute), i.Status().HeardAt)
	})
}
