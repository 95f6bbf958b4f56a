package workqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

// Producers change the state of keys and add the keys in every way; workers read the state. Two workers never have the
// same key, and at the end a worker has seen the last state of every key.
func TestNeverTwoWorkersOnOneKeyAndNoneLost(t *testing.T) {
	const producers, workers, keys, adds = 4, 4, 20, 3000
	for name, o := range map[string]workqueue.Options{"metrics off": {}, "metrics on": {Metrics: &workqueue.Metrics{}}} {
		t.Run(name, func(t *testing.T) {
			q := workqueue.New(o, workqueue.Exponential[int](workqueue.Backoff{Base: time.Microsecond, Max: ms}))
			var state, seen, hands [keys]atomic.Int64
			var producing, working sync.WaitGroup
			for seed := range producers {
				producing.Go(func() {
					random := rand.New(rand.NewPCG(uint64(seed), 0))
					for range adds {
						key := random.IntN(keys)
						state[key].Add(1)
						q.AddWith(key, workqueue.Item{
							After:       time.Duration(random.IntN(4)) * 50 * time.Microsecond,
							Priority:    random.IntN(3),
							RateLimited: random.IntN(10) == 0,
							Cause:       causeOf("1"),
						})
					}
				})
			}
			for range workers {
				working.Go(func() {
					for {
						work, err := q.Get(t.Context())
						if err != nil {
							if err != workqueue.ErrShutDown {
								t.Error(err)
							}
							return
						}
						if hands[work.Key].Add(1) != 1 {
							t.Errorf("two workers have key %d", work.Key)
						}
						seen[work.Key].Store(state[work.Key].Load())
						for _, c := range work.Causes {
							if c != causeOf("1") {
								t.Errorf("key %d came with cause %v", work.Key, c)
							}
						}
						q.Forget(work.Key)
						hands[work.Key].Add(-1)
						q.Done(work.Key)
					}
				})
			}
			producing.Wait()
			for key := range keys {
				q.Add(key) // so that no key is delayed, because a drain would drop it
			}
			require.NoError(t, q.ShutDownWithDrain(t.Context()))
			working.Wait()
			for key := range keys {
				require.Equal(t, state[key].Load(), seen[key].Load())
			}
			requireEmpty(t, q)
		})
	}
}

// A Get that is woken for a key, and cancelled before it can take the key, wakes another Get.
func TestWakeUpIsNotLostWithItsGet(t *testing.T) {
	passedOn := 0
	for range 200 {
		bubble(t, func(t *testing.T, q *workqueue.Queue[string]) {
			taken, cancelled := make(chan string, 1), make(chan error, 1)
			worker := func(ctx context.Context) {
				work, err := q.Get(ctx)
				if err != nil {
					cancelled <- err
					return
				}
				q.Done(work.Key)
				taken <- work.Key
			}
			lasting, end := context.WithCancel(t.Context())
			brief, cancel := context.WithCancel(t.Context())
			go worker(lasting)
			synctest.Wait()
			go worker(brief)
			synctest.Wait()
			cancel()
			q.Add("a")                     // may wake the Get that is about to end
			require.Equal(t, "a", <-taken) // a lost wake-up would block the bubble here
			synctest.Wait()
			if len(cancelled) == 1 {
				passedOn++
			}
			end()
			<-cancelled
		})
	}
	require.Positive(t, passedOn, "the case that this test is for did not happen")
}

// If several keys become ready at once, the same number of waiting Gets wake up.
func TestEveryWaiterGetsAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 300
		q := workqueue.New[string](workqueue.Options{})
		keys := make(chan string, workers)
		for range workers {
			go func() {
				work, err := q.Get(t.Context())
				if err != nil {
					t.Error(err)
				}
				keys <- work.Key // no Done: each key needs its own Get
			}()
		}
		synctest.Wait()
		for i := range workers {
			if i%2 == 0 {
				q.Add(fmt.Sprint(i))
			} else {
				q.AddAfter(fmt.Sprint(i), time.Second)
			}
		}
		seen := map[string]bool{}
		for range workers {
			seen[<-keys] = true
		}
		require.Len(t, seen, workers)
	})
}

// Gets wait, receive a key or give up, in any order: a key ends the wait of one Get, and an ended context that of its
// own Get.
func TestWaitersComeAndGoInAnyOrder(t *testing.T) {
	type result struct {
		get int
		err error
	}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			q, results := workqueue.New[int](workqueue.Options{}), make(chan result, 1)
			waiting := map[int]context.CancelFunc{}
			var order []int
			for step := range 300 {
				switch n := len(waiting); {
				case n < 3 || n < 20 && random.IntN(2) == 0:
					ctx, end := context.WithCancel(t.Context())
					waiting[step], order = end, append(order, step)
					go func() {
						work, err := q.Get(ctx)
						results <- result{step, err}
						if err == nil {
							q.Done(work.Key)
						}
					}()
				case random.IntN(2) == 0:
					q.Add(step)
					r := <-results
					require.NoError(t, r.err)
					require.Contains(t, waiting, r.get)
					waiting[r.get]()
					delete(waiting, r.get)
				default:
					order = slices.DeleteFunc(order, func(get int) bool { return waiting[get] == nil })
					given := order[random.IntN(len(order))]
					waiting[given]()
					require.Equal(t, result{given, context.Canceled}, <-results)
					delete(waiting, given)
				}
				synctest.Wait()
				require.Empty(t, results)
			}
			q.ShutDown()
			for range waiting {
				r := <-results
				require.ErrorIs(t, r.err, workqueue.ErrShutDown)
				waiting[r.get]()
			}
		})
	}
}
