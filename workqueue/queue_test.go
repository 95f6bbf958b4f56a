package workqueue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/workqueue"
)

func TestCausesTravelWithKeys(t *testing.T) {
	q := workqueue.New[string](workqueue.Options{MaxCauses: 2})
	for i := range 5 {
		q.AddWith("a", workqueue.Item{Cause: causeOf(fmt.Sprint(i))})
	}
	q.Add("a") // has no cause, so no cause is omitted
	work := get(t, q)
	require.Equal(t, []workqueue.Cause{causeOf("0"), causeOf("1")}, work.Causes)
	require.Equal(t, 3, work.CausesOmitted)

	q.AddWith("a", workqueue.Item{Cause: causeOf("5")})
	require.Equal(t, []workqueue.Cause{causeOf("0"), causeOf("1")}, work.Causes, "an add during processing must not change the worker's slice")
	q.Done("a")
	work = get(t, q)
	require.Equal(t, []workqueue.Cause{causeOf("5")}, work.Causes)
	require.Zero(t, work.CausesOmitted)
	q.Done("a")

	q.Add("a")
	require.Empty(t, get(t, q).Causes)
}

func TestCausesOfOneField(t *testing.T) {
	q := workqueue.New[string](workqueue.Options{})
	for _, c := range []workqueue.Cause{{Source: "a"}, {Event: "a"}, {Object: "a"}, {Version: "a"}, {At: time.Unix(1, 0)}} {
		q.AddWith("a", workqueue.Item{Cause: c})
		work := get(t, q)
		require.Equal(t, []workqueue.Cause{c}, work.Causes)
		q.Done(work.Key)
	}
	q.AddWith("a", workqueue.Item{})
	require.Empty(t, get(t, q).Causes)
}

func TestCausesOfManyAdds(t *testing.T) {
	const many = 100
	for _, limit := range []int{0, 1, 4, 5, 50, many, 1000} {
		q := workqueue.New[int](workqueue.Options{MaxCauses: limit})
		kept := limit
		if limit == 0 {
			kept = 4
		}
		kept = min(kept, many)
		for round := range 3 { // entries are reused
			for i := range many {
				q.AddWith(round, workqueue.Item{Cause: causeOf(fmt.Sprint(round, i))})
			}
			work := get(t, q)
			require.Len(t, work.Causes, kept)
			require.Equal(t, many-kept, work.CausesOmitted)
			for i, c := range work.Causes {
				require.Equal(t, causeOf(fmt.Sprint(round, i)), c)
			}
			q.Done(round)
		}
	}
}

func TestCausesCanBeSwitchedOff(t *testing.T) {
	q := workqueue.New[string](workqueue.Options{MaxCauses: -1})
	q.AddWith("a", workqueue.Item{Cause: causeOf("1")})
	work := get(t, q)
	require.Empty(t, work.Causes)
	require.Zero(t, work.CausesOmitted)
}

func TestClockIsReadOnlyForDelaysAndMetrics(t *testing.T) {
	bubble(t, func(t *testing.T, q *workqueue.Queue[string]) {
		q.Add("now")
		work := get(t, q)
		require.Zero(t, work.Added)
		require.Zero(t, work.Ready)

		start := time.Now()
		q.AddAfter("later", time.Second)
		work = get(t, q)
		require.True(t, work.Added.Equal(start))
		require.True(t, work.Ready.Equal(start.Add(time.Second)))

		start = time.Now()
		q.AddAfter("earlier", time.Second)
		q.Add("earlier")
		work = get(t, q)
		require.True(t, work.Added.Equal(start))
		require.Zero(t, work.Ready)

		q = workqueue.New[string](workqueue.Options{Metrics: &workqueue.Metrics{}})
		start = time.Now()
		q.Add("now")
		<-time.After(time.Second)
		work = get(t, q)
		require.True(t, work.Added.Equal(start))
		require.True(t, work.Ready.Equal(start))
	})
}

func TestGetEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, q *workqueue.Queue[string]) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, must.Err(q.Get(ctx)), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))

		q.Add("a")
		require.ErrorIs(t, must.Err(q.Get(ctx)), context.DeadlineExceeded, "an ended context wins over a ready key")
		require.Equal(t, []string{"a"}, getAll(t, q, 1))
	})
}

func TestDoneOfUnknownKeyPanics(t *testing.T) {
	q := workqueue.New[string](workqueue.Options{})
	require.PanicsWithValue(t, "workqueue: Done of a, which is not being processed", func() { q.Done("a") })
	q.Add("a")
	require.Panics(t, func() { q.Done("a") }, "the key is ready, but no worker has it")
	require.Equal(t, []string{"a"}, getAll(t, q, 1))
	require.Panics(t, func() { q.Done("a") }, "twice")
	q.Add("b") // the panic left no lock behind
	require.Equal(t, 1, q.Len())
}

func TestUncomparableKeyPanicsAndHarmsNothing(t *testing.T) {
	q := workqueue.New[any](workqueue.Options{})
	require.Panics(t, func() { q.Add([]int{1}) })
	q.Add(1)
	require.Equal(t, []any{1}, getAll(t, q, 1))
}

func TestMisusePanics(t *testing.T) {
	l := workqueue.Exponential[string](workqueue.Backoff{})
	for name, f := range map[string]func(){
		"jitter of a backoff": func() { workqueue.New[string](workqueue.Options{Backoff: workqueue.Backoff{Jitter: 1.1}}) },
		"base of a backoff":   func() { workqueue.Exponential[string](workqueue.Backoff{Base: -1}) },
		"max of a backoff":    func() { workqueue.Exponential[string](workqueue.Backoff{Max: -1}) },
		"negative jitter":     func() { workqueue.Exponential[string](workqueue.Backoff{Jitter: -0.1}) },
		"limiters and a Backoff": func() {
			workqueue.New(workqueue.Options{Backoff: workqueue.Backoff{Base: ms}}, l)
		},
		"limiters and a Bucket": func() { workqueue.New(workqueue.Options{Bucket: workqueue.Bucket{QPS: 1}}, l) },
	} {
		require.Panics(t, f, name)
	}
	for _, fraction := range []float64{0, 1} {
		require.NotPanics(t, func() { workqueue.Exponential[string](workqueue.Backoff{Jitter: fraction}) })
	}
}

func TestName(t *testing.T) {
	require.Equal(t, "pods", workqueue.New[string](workqueue.Options{Name: "pods"}).Name())
}

func TestAddGetDoneDoNotAllocate(t *testing.T) {
	for name, o := range map[string]workqueue.Options{"metrics off": {}, "metrics on": {Metrics: &workqueue.Metrics{}}} {
		q, ctx, i := workqueue.New[string](o), context.Background(), 0
		keys := []string{"default/a", "default/b", "default/c"}
		item := workqueue.Item{Cause: causeOf("1"), Priority: 3}
		allocs := testing.AllocsPerRun(1000, func() {
			q.AddWith(keys[i%3], item)
			q.AddWith(keys[i%3], item)
			q.AddAfter(keys[(i+1)%3], time.Hour)
			work, _ := q.Get(ctx)
			q.Done(work.Key)
			q.Add(keys[(i+1)%3])
			work, _ = q.Get(ctx)
			q.Done(work.Key)
			i++
		})
		require.Zero(t, allocs, name)
	}
}

// Causes beside the first need an array, which later adds of the key reuse.
func TestCausesDoNotAllocate(t *testing.T) {
	for adds := range 9 {
		q, item := workqueue.New[string](workqueue.Options{MaxCauses: 8}), workqueue.Item{Cause: causeOf("1")}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			for range adds {
				q.AddWith("a", item)
			}
			q.Add("a")
			work, _ := q.Get(context.Background())
			q.Done(work.Key)
		}), "%d causes", adds)
	}
}

func TestWaitingGetDoesNotAllocate(t *testing.T) {
	q, done := workqueue.New[string](workqueue.Options{}), make(chan struct{})
	go func() {
		defer close(done)
		for work, err := q.Get(context.Background()); err == nil; work, err = q.Get(context.Background()) {
			q.Done(work.Key)
			done <- struct{}{} // the test runs when the next Get waits, because there is one processor
		}
	}()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		q.Add("a")
		<-done
	}))
	q.ShutDown()
	<-done
}

// A queue whose backlog keeps its size does not allocate either.
func TestSteadyBacklogDoesNotAllocate(t *testing.T) {
	q, next := workqueue.New[int](workqueue.Options{}), 0
	turn := func() {
		q.AddWith(next, workqueue.Item{Cause: causeOf("1")})
		next++
		work, _ := q.Get(context.Background())
		q.Done(work.Key)
	}
	for range 1000 {
		q.AddWith(next, workqueue.Item{Cause: causeOf("1")})
		next++
	}
	for range 2000 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(2000, turn))
}
