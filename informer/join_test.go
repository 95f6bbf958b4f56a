package informer_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// TestJoinBetweenBatches lets handlers join while one batch follows another. If a join released the lock between its
// replay and its entry into the list of listeners, it would miss a batch or get it twice. Each batch holds the lock for
// so long that sync.Mutex enters its starvation mode and passes the lock on in the order of arrival. A join that
// releases the lock would therefore get it back only after the next batch.
func TestJoinBetweenBatches(t *testing.T) {
	const joiners, joins = 4, 10
	for _, coalesce := range []bool{false, true} {
		s := newSource()
		s.set("a", 0)
		i := informer.New(s, options(t))
		last := 0
		informer.AddIndex(i, func(w *widget) []int { // the function is called under the lock
			if w.Size == last { // the function is also called for the old state
				last++
				s.set("a", last)
			}
			for began := time.Now(); time.Since(began) < 2*time.Millisecond; {
				runtime.Gosched()
			}
			return nil
		})
		stop := running(t, i)
		<-i.Synced()
		var all sync.WaitGroup
		for range joiners {
			all.Go(func() {
				for range joins {
					joinUntilUpdate(t, i, coalesce)
				}
			})
		}
		all.Wait()
		stop()
	}
}

// joinUntilUpdate joins, and leaves when the handler has got an Update. A historyChecker checks the notifications.
func joinUntilUpdate(t *testing.T, i *informer.Informer[*widget], coalesce bool) {
	b, updated := newHistoryChecker(t), make(chan struct{})
	closeUpdated := sync.OnceFunc(func() { close(updated) })
	r, err := i.Subscribe(func(n api.Change[*widget]) {
		b.handle(n)
		if n.Type == api.Updated {
			closeUpdated()
		}
	}, informer.HandlerOptions{Coalesce: coalesce})
	if err != nil {
		t.Error(err)
		return
	}
	select {
	case <-updated:
	case <-r.Done(): // the historyChecker has failed
	}
	r.Remove()
}

// TestSyncedIsClosedBetweenTheCacheAndTheHandlers reads Synced while the first list is applied, which is when index
// functions are called, and in the first call of each handler. It needs many handlers and several rounds, so that some
// handler runs before the last one has its notifications.
func TestSyncedIsClosedBetweenTheCacheAndTheHandlers(t *testing.T) {
	for range 10 {
		s := newSource()
		s.set("a", 0)
		i := informer.New(s, options(t))
		informer.AddIndex(i, func(*widget) []int {
			require.False(t, runstate.IsClosed(i.Synced()), "Synced must not be closed before the cache holds the first list")
			return nil
		})
		var all []informer.Registration
		for range 1000 {
			all = append(all, subscribe(t, i, func(api.Change[*widget]) {
				if !runstate.IsClosed(i.Synced()) {
					t.Error("a handler is called before the informer is synced")
				}
			}, informer.HandlerOptions{}))
		}
		stop := running(t, i)
		<-i.Synced()
		require.Equal(t, 1, i.Cache().Len())
		for _, r := range all {
			<-r.Synced()
		}
		stop()
	}
}
