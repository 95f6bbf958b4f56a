package deltafifo_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// aPause is long enough that the next change counts as a single one.
const aPause = time.Millisecond

// TestFlushProcessesASingleChange flushes a change after a pause while a consumer waits. The producer must process it,
// and the consumer must not wake up.
func TestFlushProcessesASingleChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go q.Pop(ctx, func(b batch) { t.Errorf("the consumer got %v", lines(b)) })
		synctest.Wait()
		for i := range 3 {
			version := strconv.Itoa(i)
			q.Flush(nil, true) // nothing to process
			<-time.After(aPause)
			q.Put(at("a", version), version)
			synctest.Wait()
			var got []string
			q.Flush(func(b batch) { got = append(got, b.ResourceVersion) }, true)
			require.Equal(t, []string{version}, got)
		}
	})
}

// TestFlushLeavesABusyStreamToTheConsumer flushes changes without pauses, and many changes at once.
func TestFlushLeavesABusyStreamToTheConsumer(t *testing.T) {
	for name, put := range map[string]func(q *queue, inline func(batch)){
		"without a pause": func(q *queue, inline func(batch)) {
			q.Put(at("a", "1"), "1")
			q.Flush(func(batch) {}, true)
			q.Put(at("a", "2"), "2")
			q.Flush(inline, true)
		},
		"many objects": func(q *queue, inline func(batch)) {
			q.Flush(inline, true)
			for i := range 100 {
				q.Put(at("a"+strconv.Itoa(i), "1"), "1")
			}
			q.Flush(inline, true)
		},
		"a list": func(q *queue, inline func(batch)) {
			q.Flush(inline, true)
			var list []*thing
			for i := range 100 {
				list = append(list, at("a"+strconv.Itoa(i), "1"))
			}
			q.Replace(list, "1")
			q.Flush(inline, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := deltafifo.New[*thing]()
				<-time.After(aPause)
				put(q, func(b batch) { t.Errorf("Flush processed %v", lines(b)) })
				popped := 0
				require.NoError(t, q.Pop(t.Context(), func(b batch) { popped += len(b.Objects) }))
				require.NotZero(t, popped)
			})
		})
	}
}

// TestFlushDuringProcessing flushes while the consumer processes a batch. The consumer must get the change next.
func TestFlushDuringProcessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		q.Put(at("a", "1"), "1")
		require.NoError(t, q.Pop(t.Context(), func(batch) {
			<-time.After(aPause)
			q.Put(at("a", "2"), "2")
			q.Flush(func(b batch) { t.Errorf("Flush processed %v", lines(b)) }, true)
		}))
		require.NoError(t, q.Pop(t.Context(), func(b batch) { require.Equal(t, "2", b.ResourceVersion) }))
	})
}

// TestResyncWakesTheConsumerOfAFlushedQueue asks for a resync of a queue whose producer flushes.
func TestResyncWakesTheConsumerOfAFlushedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		q.Flush(nil, true)
		go q.Resync()
		require.NoError(t, q.Pop(t.Context(), func(b batch) { require.True(t, b.Resync) }))
	})
}

// TestPutWakesPopAfterTheLastFlush puts a change in after the producer has said that it will not flush again.
func TestPutWakesPopAfterTheLastFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		q.Flush(nil, true)
		q.Flush(nil, false)
		go q.Put(at("a", "1"), "1")
		require.NoError(t, q.Pop(t.Context(), func(b batch) { require.Equal(t, "1", b.ResourceVersion) }))
	})
}

// TestNothingIsProcessedAfterClose closes the queue while Flush processes a batch.
func TestNothingIsProcessedAfterClose(t *testing.T) {
	q := deltafifo.New[*thing]()
	processed, closed := false, make(chan bool)
	q.Put(at("a", "1"), "1")
	q.Flush(func(batch) {
		started := make(chan struct{})
		go func() {
			close(started)
			q.Close()
			closed <- processed
		}()
		<-started
		for range 100 {
			runtime.Gosched()
		}
		processed = true
	}, true)
	require.True(t, <-closed, "Close did not wait")
	q.Put(at("a", "2"), "2")
	q.Flush(func(b batch) { t.Errorf("Flush processed %v", lines(b)) }, true)
}

// TestConcurrentFlush runs a producer that flushes before its pauses beside a consumer, and compares what they have.
func TestConcurrentFlush(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			q, r := deltafifo.New[*thing](), rand.New(rand.NewPCG(seed, 1))
			c := &consumer{t: t, objects: map[api.Key]*thing{}}
			want := map[api.Key]*thing{}
			var mu sync.Mutex // the test would not notice two calls at once otherwise
			process := func(b batch) {
				require.True(t, mu.TryLock(), "two batches are processed at once")
				defer mu.Unlock()
				c.apply(b)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var consuming sync.WaitGroup
			consuming.Go(func() {
				for q.Pop(ctx, process) == nil {
				}
			})
			q.Replace(nil, "1")
			for i := 2; i < 2000; i++ {
				version := strconv.Itoa(i)
				o := incarnation(string(rune('a'+r.IntN(20))), strconv.Itoa(r.IntN(2)+1), version)
				if r.IntN(3) == 0 {
					q.Delete(o, version)
					delete(want, api.KeyOf(o))
				} else {
					q.Put(o, version)
					want[api.KeyOf(o)] = o
				}
				if r.IntN(4) == 0 {
					q.Flush(process, true)
					<-time.After(time.Duration(r.IntN(2)) * aPause)
				}
			}
			q.Flush(process, false)
			synctest.Wait() // the consumer has what Flush left
			cancel()
			consuming.Wait()
			require.Equal(t, want, c.objects)
		})
	}
}

// TestFlushDoesNotAllocate puts single changes through the queue.
func TestFlushDoesNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := deltafifo.New[*thing]()
		states := []*thing{at("a", "1"), at("a", "2")}
		processed, i := 0, 0
		process := func(batch) { processed++ }
		require.Zero(t, testing.AllocsPerRun(100, func() {
			i++
			q.Put(states[i%2], states[i%2].version)
			q.Flush(process, true)
		}))
		require.NotZero(t, processed)
	})
}
