package workqueue_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

type large struct{ _ [1 << 12]byte }

// No array or list keeps a key alive after it has left the queue in any way.
func TestFinishedKeysAreNotRetained(t *testing.T) {
	q := workqueue.New[*large](workqueue.Options{})
	var gone []weak.Pointer[large]
	leave := func(f func(key *large)) {
		for range 10 {
			key := &large{}
			gone = append(gone, weak.Make(key))
			f(key)
		}
	}
	leave(func(key *large) { // was ready
		q.AddWith(key, workqueue.Item{Priority: len(gone) % 3})
		q.Done(get(t, q).Key)
	})
	leave(func(key *large) { // was delayed
		q.AddAfter(key, time.Hour)
		q.Add(key)
		q.Done(get(t, q).Key)
	})
	leave(func(key *large) { // was delayed, and became due by itself
		q.AddAfter(key, time.Microsecond)
		q.Done(get(t, q).Key)
	})
	stays := &large{}
	q.AddAfter(stays, 2*time.Hour)
	requireGone(t, gone)
	require.Equal(t, 1, q.Stats().Delayed)

	gone = nil
	leave(func(key *large) { q.AddAfter(key, time.Hour) })
	q.ShutDown() // drops what is delayed
	requireGone(t, gone)
	runtime.KeepAlive(q)
}

func requireGone(t *testing.T, gone []weak.Pointer[large]) {
	t.Helper()
	runtime.GC()
	for i, w := range gone {
		require.Nil(t, w.Value(), "the %d-th of %d", i, len(gone))
	}
}

func TestCausesAreNotRetained(t *testing.T) {
	q := workqueue.New[int](workqueue.Options{MaxCauses: 100})
	var gone []weak.Pointer[byte]
	text := func() string {
		b := []byte(strings.Repeat("x", 1000))
		gone = append(gone, weak.Make(unsafe.SliceData(b)))
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	for _, adds := range []int{1, 2, 4, 5, 9, 40} {
		q.AddWith(2, workqueue.Item{After: time.Hour, Cause: workqueue.Cause{Object: text()}})
		drop(t, q, 2)
		for range adds {
			q.AddWith(1, workqueue.Item{Cause: workqueue.Cause{Object: text()}})
		}
		work := get(t, q)
		q.AddWith(1, workqueue.Item{Cause: workqueue.Cause{Object: text()}})
		q.Done(work.Key)
		getAll(t, q, 1)
		runtime.GC()
		for i, w := range gone {
			require.Nil(t, w.Value(), "the %d-th text, after %d adds", i, adds)
		}
	}
	runtime.KeepAlive(q)
}

// The room of a finished key is reused, however often and in whatever order keys come and go.
func TestMemoryIsReused(t *testing.T) {
	const keys = 1000
	q, next := workqueue.New[int](workqueue.Options{}), 0
	defer q.ShutDown() // see heap
	add := func(n int) {
		for range n {
			q.AddAfter(next, time.Hour)
			next++
		}
	}
	add(keys)
	chunks := q.Chunks()
	for key := 0; key < keys; key += 2 {
		drop(t, q, key)
	}
	add(keys / 2)
	require.Equal(t, chunks, q.Chunks(), "half of each chunk was free")
	for range 10 {
		for key := range next {
			if !q.DueAt(key).IsZero() {
				drop(t, q, key)
			}
		}
		next = 0
		add(keys)
		require.Equal(t, chunks, q.Chunks(), "new chunks fill the gaps of the released ones")
	}
	for key := range next {
		drop(t, q, key)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		q.Add(1)
		q.Done(get(t, q).Key)
	}), "a key is kept alive")
}

// Entries keep little memory for causes, even if MaxCauses is large.
func TestCausesKeepLittleMemory(t *testing.T) {
	const keys, causes = 100, 1000
	q := workqueue.New[int](workqueue.Options{MaxCauses: causes})
	before := heap()
	for key := range keys {
		for range causes {
			q.AddWith(key, workqueue.Item{After: time.Hour, Cause: causeOf("1")})
		}
	}
	for key := range keys {
		drop(t, q, key)
	}
	require.Less(t, heap()-before, int64(keys*causes*10))
	runtime.KeepAlive(q)
}

// A limiter releases the memory of a burst of failures, even if one key has not succeeded yet.
func TestMemoryOfFailuresIsReleased(t *testing.T) {
	const keys = 50_000
	l := workqueue.Exponential[int](workqueue.Backoff{})
	before := heap()
	for key := range keys {
		l.When(key)
	}
	l.When(7)
	require.Greater(t, heap()-before, int64(keys*10))
	for key := range keys {
		if key != 7 {
			l.Forget(key)
		}
	}
	require.Less(t, heap()-before, int64(keys*2))
	require.Equal(t, 2, l.NumRequeues(7))
	require.Zero(t, l.NumRequeues(8))
	runtime.KeepAlive(l)
}

func TestMemoryOfABurstIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[int](workqueue.Options{})
		before := heap()
		for _, item := range []workqueue.Item{{Cause: causeOf("1")}, {After: time.Hour, Cause: causeOf("1")}} {
			const keys = 50_000
			q.AddAfter(-1, 5*time.Second) // between the burst and the trim
			for key := range keys {
				q.AddWith(key, item)
			}
			require.Greater(t, heap()-before, int64(keys*100))
			for key := range keys {
				if item.After > 0 {
					drop(t, q, key)
				} else {
					q.Done(get(t, q).Key)
				}
			}
			require.Equal(t, []int{-1}, getAll(t, q, 1))
			q.AddAfter(-1, time.Hour)
			drop(t, q, -1)
			for range 25 {
				q.Add(-1) // keys that come and go do not postpone the release
				getAll(t, q, 1)
				<-time.After(time.Second)
			}
			synctest.Wait()
			require.Less(t, heap()-before, int64(keys*5))
			require.False(t, q.StopTimer(), "there is no more memory to release")
		}
		runtime.KeepAlive(q)
	})
}

// The first trim keeps the room of the burst before it, and the second one releases all but the room that a queue
// always has.
func TestRoomAfterABurst(t *testing.T) {
	for name, round := range map[string]func(q *workqueue.Queue[int], keys int){
		"ready": func(q *workqueue.Queue[int], keys int) {
			for key := range keys {
				q.Add(key)
			}
			getAll(t, q, keys)
		},
		"delayed": func(q *workqueue.Queue[int], keys int) {
			for key := range keys {
				q.AddAfter(key, time.Hour)
			}
			for key := range keys {
				drop(t, q, key)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New[int](workqueue.Options{})
				round(q, 5000)
				<-time.After(10 * time.Second)
				synctest.Wait()
				entries, slots, delays := q.Room()
				require.Equal(t, []int{5056, 8192}, []int{entries, slots}, "the next multiple of 64; the next power of two")
				if name == "delayed" {
					require.Equal(t, 5120, delays, "the next multiple of 128")
				}
				<-time.After(10 * time.Second)
				synctest.Wait()
				entries, slots, delays = q.Room()
				require.Equal(t, []int{256, 512}, []int{entries, slots})
				require.LessOrEqual(t, delays, 512)
				require.False(t, q.StopTimer(), "there is no more room to release")
			})
		})
	}
}

// However keys come and go between trims, the queue keeps them and their times.
func TestKeysBetweenTrims(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 5))
			q, start := workqueue.New[int](workqueue.Options{}), time.Now()
			var keys []int
			var due []time.Duration // by key
			for range 20 {
				size := []int{0, 100, 400, 1000, 3000}[random.IntN(5)]
				for len(keys) < size {
					after := time.Hour + time.Duration(random.IntN(1000))*time.Second
					q.AddAfter(len(due), after)
					keys, due = append(keys, len(due)), append(due, time.Since(start)+after)
				}
				for len(keys) > size {
					i := random.IntN(len(keys))
					drop(t, q, keys[i])
					keys = slices.Delete(keys, i, i+1)
				}
				<-time.After(time.Duration(random.IntN(25)) * time.Second)
				synctest.Wait()
				require.Equal(t, len(keys), q.Stats().Delayed)
			}
			slices.SortStableFunc(keys, func(a, b int) int { return cmp.Compare(due[a], due[b]) })
			for _, key := range keys {
				require.Equal(t, []int{key}, getAll(t, q, 1))
				require.Equal(t, due[key], time.Since(start))
			}
			requireEmpty(t, q)
		})
	}
}

// A trim does not touch memory in use: keys that stay and keys that come later are all handed out.
func TestKeysSurviveATrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, part = 5120, 512 // the remaining keys nearly fill a table of their size
		q, chunks := workqueue.New[int](workqueue.Options{}), 0
		for round := range 3 {
			for key := range keys {
				q.AddAfter(key, time.Hour+time.Duration(key))
			}
			require.GreaterOrEqual(t, q.Chunks(), chunks)
			chunks = q.Chunks()
			for key := range keys {
				if key/part != round {
					drop(t, q, key)
				}
			}
			<-time.After(time.Minute)
			synctest.Wait()
			require.Equal(t, part, q.Stats().Delayed)
			for key := keys; key < 2*keys; key++ {
				q.AddWith(key, workqueue.Item{Cause: causeOf("1")})
			}
			require.LessOrEqual(t, q.Chunks(), chunks+part/32, "new chunks fill the gaps of the released ones")
			for i, key := range getAll(t, q, keys) {
				require.Equal(t, keys+i, key)
			}
			<-time.After(time.Minute)
			for i, key := range getAll(t, q, part) {
				require.Equal(t, part*round+i, key)
			}
			requireEmpty(t, q)
		}
	})
}

// A queue whose backlog comes and goes keeps its memory meanwhile and allocates no more.
func TestBacklogThatComesAndGoesDoesNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 5000
		q, ctx := workqueue.New[int](workqueue.Options{}), context.Background()
		burst := func() {
			for key := range keys {
				q.AddWith(key, workqueue.Item{Cause: causeOf("1")})
			}
			for range keys {
				work, _ := q.Get(ctx)
				q.Done(work.Key)
			}
		}
		burst()
		room, _, _ := q.Room()
		before := heap()
		for range 20 {
			burst()
			<-time.After(7 * time.Second)
			synctest.Wait()
			entries, _, _ := q.Room()
			require.Equal(t, room, entries)
			require.Less(t, heap()-before, int64(keys*10))
		}
		require.Zero(t, testing.AllocsPerRun(10, burst))
	})
}

// Keys that become due soon after a burst do not release its memory earlier.
func TestMemoryIsKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 5000
		q := workqueue.New[int](workqueue.Options{})
		burst := func() {
			for key := range keys {
				q.Add(key)
			}
			for range keys {
				q.Done(get(t, q).Key)
			}
		}
		burst()
		for range 5 {
			q.AddAfter(0, time.Second)
			q.Done(get(t, q).Key)
		}
		before := mallocs()
		burst()
		require.Less(t, mallocs()-before, uint64(keys/100))
	})
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// A queue that was shut down has no timer that would keep it in memory, however large it was.
func TestShutDownQueueIsNotTrimmed(t *testing.T) {
	q := workqueue.New[int](workqueue.Options{})
	for key := range 2000 {
		q.Add(key)
	}
	getAll(t, q, 1500)
	q.ShutDown()
	require.False(t, q.StopTimer())
	getAll(t, q, 500)
	require.False(t, q.StopTimer())
}

// heap returns the bytes of the process that are in use. They are those of all tests, as the allocations are that
// testing.AllocsPerRun counts. So a test on real time shuts a large queue down: the timer of a queue that was forgotten
// would give room back 10 and 20 seconds later, in the middle of a test that measures.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The queue owns no goroutine: a delayed key and no Get add no goroutine.
func TestNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](workqueue.Options{Metrics: &workqueue.Metrics{}})
		q.AddAfter("a", time.Second)
		requireNoGoroutine(t)
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, q.Len())
		requireNoGoroutine(t)
		q.ShutDown()
	})
}

// requireNoGoroutine looks for goroutines that run code of the package or that the package has started. A count would
// not do: runtime.NumGoroutine counts a goroutine for a moment after its end.
func requireNoGoroutine(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	require.NotContains(t, string(stacks), "leat/workqueue.")
}
