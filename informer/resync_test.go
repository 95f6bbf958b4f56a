package informer_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// TestResyncKeepsItsPeriodUnderLoad has batches that take time. A delay must not move later resyncs, and no resync may
// be missing.
func TestResyncKeepsItsPeriodUnderLoad(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		o := options(t)
		o.ResyncPeriod = 10 * time.Second
		i := informer.New(s, o)
		i.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) { <-time.After(time.Second) }})
		started := time.Now()
		var at []time.Duration
		subscribe(t, i, func(n api.Change[*widget]) {
			if n.Resync {
				at = append(at, time.Since(started))
			}
		}, informer.HandlerOptions{})
		defer running(t, i)()
		<-time.After(9500 * time.Millisecond)
		s.set("b", 1) // is handled while the first resync becomes due
		<-time.After(41 * time.Second)
		synctest.Wait()
		want := []time.Duration{10500 * time.Millisecond, 10500 * time.Millisecond}
		for _, second := range []time.Duration{20, 30, 40, 50} {
			want = append(want, second*time.Second, second*time.Second)
		}
		require.Equal(t, want, at)
	})
}

// TestPendingCountsTakenNotifications has a resync in one batch with changes and deletions, which the resync skips.
// Pending must count exactly the delivered notifications.
func TestPendingCountsTakenNotifications(t *testing.T) {
	for name, coalesce := range map[string]bool{"full": false, "coalescing": true} {
		t.Run(name, func(t *testing.T) {
			onSource(t, func(t *testing.T, s *source) {
				for _, name := range []string{"a", "b", "c", "d"} {
					s.set(name, 1)
				}
				o := options(t)
				o.ResyncPeriod = 10 * time.Second
				i := informer.New(s, o)
				i.Trace(informer.Trace{MayBlock: true, Batch: func(informer.TracedBatch) { <-time.After(time.Second) }})
				var r recorder
				var registration informer.Registration
				var pending []int // in each call
				registration = subscribe(t, i, func(n api.Change[*widget]) {
					pending = append(pending, registration.Pending())
					r.handle(n)
				}, informer.HandlerOptions{Coalesce: coalesce})
				defer running(t, i)()
				<-time.After(9500 * time.Millisecond)
				s.set("d", 2) // is handled while the following changes arrive
				synctest.Wait()
				r.take()
				pending = nil
				s.remove("a")
				s.remove("b")
				s.set("c", 2)
				<-time.After(5 * time.Second)
				synctest.Wait()
				require.ElementsMatch(t, []string{"Deleted a 1", "Deleted b 1", "Updated c 1→2", "Updated d 2→2 resync"}, r.take())
				require.Len(t, pending, 4)
				for n, left := range pending {
					require.GreaterOrEqual(t, left, 0)
					require.LessOrEqual(t, left, 3-n)
				}
				require.Zero(t, registration.Pending())
			})
		})
	}
}

// slow is a source that delays the first event.
type slow struct {
	*source
	after time.Duration
}

func (s slow) Watch(ctx context.Context, o api.Options[*widget]) iter.Seq2[api.Event[*widget], error] {
	<-time.After(s.after)
	return s.source.Watch(ctx, o)
}

// TestInitialListIsNotDeliveredTwice has a resync in one batch with the initial list.
func TestInitialListIsNotDeliveredTwice(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		o := options(t)
		o.ResyncPeriod = 10 * time.Second
		i := informer.New(slow{s, 15 * time.Second}, o)
		i.Trace(informer.Trace{MayBlock: true, Batch: func(b informer.TracedBatch) {
			if b.Objects == 0 && !b.InitialList {
				<-time.After(11 * time.Second) // from the first resync, which is empty, until after the second
			}
		}})
		var r recorder
		subscribe(t, i, r.handle, informer.HandlerOptions{})
		defer running(t, i)()
		<-time.After(25 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"Added a 1 initial"}, r.take())
		<-time.After(10 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"Updated a 1→1 resync"}, r.take())
	})
}

// TestEachHandlerHasItsOwnResyncPeriod has handlers that register before Run and while it runs, in an informer without
// a period.
func TestEachHandlerHasItsOwnResyncPeriod(t *testing.T) {
	onSource(t, func(t *testing.T, s *source) {
		s.set("a", 1)
		i := informer.New(s, options(t))
		started := time.Now()
		var mu sync.Mutex // guards at
		at := map[string][]time.Duration{}
		join := func(name string, period time.Duration) informer.Registration {
			return subscribe(t, i, func(n api.Change[*widget]) {
				if n.Resync {
					mu.Lock()
					defer mu.Unlock()
					at[name] = append(at[name], time.Since(started))
				}
			}, informer.HandlerOptions{Name: name, ResyncPeriod: period})
		}
		join("early", 10*time.Second)
		join("never", -1)
		defer running(t, i)()
		<-time.After(11 * time.Second)
		join("none", 0)
		late := join("late", 3*time.Second)
		join("short", time.Millisecond)
		<-time.After(1500 * time.Millisecond)
		late.Remove()
		join("long", time.Hour)
		<-time.After(time.Second)
		synctest.Wait()
		const s12, s13 = 12 * time.Second, 13 * time.Second
		mu.Lock()
		require.Equal(t, map[string][]time.Duration{"early": {10 * time.Second}, "short": {s12, s13}}, at)
		mu.Unlock()
		<-time.After(7 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 20*time.Second, at["early"][1])
		require.Empty(t, at["late"])
	})
}
