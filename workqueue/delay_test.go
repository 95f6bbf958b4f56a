package workqueue_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

func TestEqualDelaysKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 1000 // more than become ready under one lock
		q := workqueue.New[int](workqueue.Options{})
		q.SetDelayedAdds(math.MaxUint32 - keys/2) // the number of the adds overflows
		for i := range keys {
			q.AddAfter(i, time.Second)
		}
		for i, key := range getAll(t, q, keys) {
			require.Equal(t, i, key)
		}
	})
}

// Keys with random delays, of which some end earlier or at once, become ready in the order of the times, and keys
// with the same time in the order of their first adds.
func TestManyDelays(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			const keys = 500
			random := rand.New(rand.NewPCG(seed, 4))
			q, start, due := workqueue.New[int](workqueue.Options{}), time.Now(), make([]time.Duration, keys)
			for key := range keys {
				due[key] = time.Duration(1+random.IntN(keys)) * time.Second
				q.AddAfter(key, due[key])
			}
			var stay []int
			for key := range keys {
				switch random.IntN(3) {
				case 0:
					drop(t, q, key)
					continue
				case 1:
					earlier := time.Duration(1+random.IntN(keys)) * time.Second
					q.AddAfter(key, earlier)
					due[key] = min(due[key], earlier)
				}
				stay = append(stay, key)
			}
			slices.SortStableFunc(stay, func(a, b int) int { return cmp.Compare(due[a], due[b]) })
			for _, key := range stay {
				work := get(t, q)
				require.Equal(t, key, work.Key)
				require.Equal(t, due[key], time.Since(start))
				q.Done(work.Key)
			}
			requireEmpty(t, q)
		})
	}
}

// A key can leave the heap from any place. The times of one of the root's four branches are later than all others, so
// the two sides of its border must not mix.
func TestDelaysEndInEveryPlace(t *testing.T) {
	const keys, last = 100, 99
	branch := func(key int) int {
		for key > 4 {
			key = (key - 1) / 4
		}
		return key
	}
	for late := range 5 {
		for dropped := range keys {
			synctest.Test(t, func(t *testing.T) {
				q, start := workqueue.New[int](workqueue.Options{}), time.Now()
				for key := range keys {
					delay := time.Duration(1+key) * time.Second
					if branch(key) == late && key > 0 || key == last {
						delay += time.Hour
					}
					q.AddAfter(key, delay)
				}
				drop(t, q, dropped)
				for range keys - 1 {
					work := get(t, q)
					require.Equal(t, time.Duration(1+work.Key)*time.Second, time.Since(start)%time.Hour)
					q.Done(work.Key)
				}
			})
		}
	}
}

// The timer runs only while a key is delayed. A running timer keeps its queue in memory, even if nothing else refers to
// it.
func TestTimerStopsWithTheLastDelay(t *testing.T) {
	bubble(t, func(t *testing.T, q *workqueue.Queue[string]) {
		q.AddAfter("a", time.Hour)
		q.Add("a")
		require.False(t, q.StopTimer())
		q.Done(get(t, q).Key)
		q.AddAfter("a", time.Second)
		q.AddAfter("b", time.Hour)
		q.Add("a")
		require.True(t, q.StopTimer(), "b waits")
	})
}

func TestEndlessDelay(t *testing.T) {
	bubble(t, func(t *testing.T, q *workqueue.Queue[string]) {
		<-time.After(time.Hour)
		q.AddAfter("never", math.MaxInt64)
		<-time.After(time.Hour)
		synctest.Wait()
		require.Zero(t, q.Len())
		q.AddAfter("soon", time.Second)
		require.Equal(t, []string{"soon"}, getAll(t, q, 1))
		drop(t, q, "never")
	})
}
