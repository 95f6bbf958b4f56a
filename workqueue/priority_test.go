package workqueue_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

// noAgeing is an ageing so large that no test sees its effect.
const noAgeing = math.MaxInt

func TestUrgentKeysGoFirst(t *testing.T) {
	q := workqueue.NewAgeing[string](noAgeing, workqueue.Options{})
	for _, p := range []int{0, -100, 5, math.MinInt, 0, math.MaxInt, -100} {
		q.AddWith(fmt.Sprint(p, "#", q.Len()), workqueue.Item{Priority: p})
	}
	require.Equal(t, []string{
		fmt.Sprint(math.MaxInt, "#", 5), "5#2", "0#0", "0#4", "-100#1", "-100#6", fmt.Sprint(math.MinInt, "#", 3),
	}, getAll(t, q, 7))
}

// Each lower class is served within the bound of ageing, even if the highest class always has a ready key.
func TestLowestClassIsServedUnderFullLoad(t *testing.T) {
	for _, turns := range []int{1, 2, 8, 100} {
		const urgent = 20
		q := workqueue.NewAgeing[string](turns, workqueue.Options{})
		if turns == 8 {
			q = workqueue.New[string](workqueue.Options{}) // that is its default
		}
		for i := range urgent {
			q.AddWith(fmt.Sprint("urgent", i), workqueue.Item{Priority: 100})
		}
		low := []string{"middle", "low", "lowest"}
		for i, key := range low {
			q.AddWith(key, workqueue.Item{Priority: -100 * i})
		}
		served := map[string]int{}
		for turn := 1; len(served) < len(low); turn++ {
			require.LessOrEqual(t, turn, turns*(urgent+len(low)), "ageing %d: starved, served so far: %v", turns, served)
			work := get(t, q)
			if work.Priority == 100 {
				q.AddWith(work.Key, workqueue.Item{Priority: 100}) // so that it is ready again at once
			} else {
				served[work.Key] = turn
			}
			q.Done(work.Key)
		}
		for i, key := range low {
			require.LessOrEqual(t, served[key], turns*(1+urgent+i), "ageing %d: %s", turns, key)
		}
	}
}

// The bound holds for every key, whatever is added and raised meanwhile, and urgent keys keep their share of the turns.
func TestAgeingBoundHoldsForEveryKey(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		ageing := 1 + random.IntN(10)
		q := workqueue.NewAgeing[int](ageing, workqueue.Options{})
		defer q.ShutDown() // see heap
		type promise struct{ since, within int }
		promises, turn := map[int]promise{}, 0
		for key := range 1000 {
			q.AddWith(key, workqueue.Item{Priority: random.IntN(6)})
			promises[key] = promise{turn, ageing * q.Len()} // q.Len() - 1 keys were ready before it
			if raised := random.IntN(key + 1); random.IntN(3) == 0 && promises[raised] != (promise{}) {
				q.AddWith(raised, workqueue.Item{Priority: random.IntN(12)})
			}
			if q.Len() > 30 || random.IntN(4) == 0 {
				turn++
				work := get(t, q)
				p := promises[work.Key]
				require.LessOrEqual(t, turn-p.since, p.within)
				delete(promises, work.Key)
				q.Done(work.Key)
			}
		}
		for q.Len() > 0 {
			turn++
			work := get(t, q)
			p := promises[work.Key]
			require.LessOrEqual(t, turn-p.since, p.within)
			q.Done(work.Key)
		}
	}
}

// A large backlog of unimportant keys delays an urgent key by at most one turn.
func TestBacklogDoesNotHoldUpUrgentKeys(t *testing.T) {
	q := workqueue.New[int](workqueue.Options{})
	for key := range 10_000 {
		q.AddWith(key, workqueue.Item{Priority: -100})
	}
	for urgent := -1; urgent > -1000; urgent-- {
		q.Add(urgent)
		first := get(t, q)
		q.Done(first.Key)
		if first.Key != urgent {
			require.Equal(t, urgent, get(t, q).Key)
			q.Done(urgent)
		}
	}
}

func TestAgeingOneIsFIFO(t *testing.T) {
	q := workqueue.NewAgeing[int](1, workqueue.Options{})
	for key := range 100 {
		q.AddWith(key, workqueue.Item{Priority: key % 7})
	}
	for i, key := range getAll(t, q, 100) {
		require.Equal(t, i, key)
	}
}

func TestManyClasses(t *testing.T) {
	const keys = 2000
	q := workqueue.NewAgeing[int](noAgeing, workqueue.Options{})
	defer q.ShutDown() // see heap
	for key := range keys {
		q.AddWith(key, workqueue.Item{Priority: key * 7919 % keys})
	}
	for i := range keys {
		require.Equal(t, keys-1-i, get(t, q).Priority)
	}
}
