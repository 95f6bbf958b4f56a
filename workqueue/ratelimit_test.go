package workqueue_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

const ms = time.Millisecond

// delays calls a limiter n times for one key.
func delays(l workqueue.RateLimiter[string], key string, n int) (d []time.Duration) {
	for range n {
		d = append(d, l.When(key))
	}
	return d
}

func TestExponential(t *testing.T) {
	l := workqueue.Exponential[string](workqueue.Backoff{Base: ms, Max: time.Second})
	require.Equal(t, []time.Duration{1 * ms, 2 * ms, 4 * ms, 8 * ms, 16 * ms}, delays(l, "one", 5))
	require.Equal(t, 5, l.NumRequeues("one"))
	require.Equal(t, []time.Duration{1 * ms, 2 * ms}, delays(l, "two", 2), "keys do not affect each other")
	require.Equal(t, []time.Duration{32 * ms, 64 * ms, 128 * ms, 256 * ms, 512 * ms, time.Second, time.Second}, delays(l, "one", 7))
	l.Forget("one")
	require.Zero(t, l.NumRequeues("one"))
	require.Equal(t, []time.Duration{1 * ms}, delays(l, "one", 1))
	require.Equal(t, 2, l.NumRequeues("two"))
	l = workqueue.Exponential[string](workqueue.Backoff{Base: 2, Max: 5})
	require.Equal(t, []time.Duration{2, 4, 5, 5}, delays(l, "one", 4), "a delay may be more than half of Max")
}

func TestExponentialDefaults(t *testing.T) {
	l := workqueue.Exponential[string](workqueue.Backoff{})
	require.Equal(t, []time.Duration{5 * ms, 10 * ms, 20 * ms}, delays(l, "a", 3))
	require.Equal(t, 1000*time.Second, delays(l, "a", 100)[99])
}

func TestExponentialDoesNotOverflow(t *testing.T) {
	for _, b := range []workqueue.Backoff{
		{Base: ms, Max: 1000 * time.Second},
		{Base: 1, Max: math.MaxInt64},
		{Base: 3, Max: math.MaxInt64},
		{Base: time.Minute, Max: time.Hour},
		{Base: math.MaxInt64, Max: math.MaxInt64},
		{Base: math.MaxInt64, Max: 1},
		{Base: time.Hour, Max: time.Minute},
	} {
		last := time.Duration(0)
		for _, d := range delays(workqueue.Exponential[string](b), "a", 300) {
			require.Positive(t, d)
			require.LessOrEqual(t, d, b.Max)
			require.GreaterOrEqual(t, d, last)
			require.True(t, d == b.Max || last == 0 || d == 2*last, "neither Max nor twice the previous delay")
			last = d
		}
		require.Equal(t, b.Max, last)
		require.Equal(t, b.Max, b.Delay(math.MaxInt))
	}
}

func TestFastSlow(t *testing.T) {
	l := workqueue.FastSlow[string](5*ms, 10*time.Second, 3)
	require.Equal(t, []time.Duration{5 * ms, 5 * ms, 5 * ms, 10 * time.Second, 10 * time.Second}, delays(l, "one", 5))
	require.Equal(t, 5, l.NumRequeues("one"))
	require.Equal(t, []time.Duration{5 * ms, 5 * ms}, delays(l, "two", 2))
	l.Forget("one")
	require.Zero(t, l.NumRequeues("one"))
	require.Equal(t, []time.Duration{5 * ms}, delays(l, "one", 1))
}

func TestMaxOf(t *testing.T) {
	l := workqueue.MaxOf(
		workqueue.FastSlow[string](5*ms, 3*time.Second, 3),
		workqueue.Exponential[string](workqueue.Backoff{Base: ms, Max: time.Second}),
	)
	require.Equal(t, []time.Duration{5 * ms, 5 * ms, 5 * ms, 3 * time.Second, 3 * time.Second}, delays(l, "one", 5))
	require.Equal(t, 5, l.NumRequeues("one"))
	l.Forget("one")
	require.Zero(t, l.NumRequeues("one"))
	require.Equal(t, []time.Duration{5 * ms}, delays(l, "one", 1))
	require.Zero(t, workqueue.MaxOf[string]().When("a"))
}

func TestWithMaxWait(t *testing.T) {
	l := workqueue.WithMaxWait(workqueue.Exponential[string](workqueue.Backoff{Base: ms}), 5*ms)
	require.Equal(t, []time.Duration{1 * ms, 2 * ms, 4 * ms, 5 * ms, 5 * ms}, delays(l, "a", 5))
	require.Equal(t, 5, l.NumRequeues("a"))
	l.Forget("a")
	require.Equal(t, []time.Duration{1 * ms}, delays(l, "a", 1))
}

func TestJitterOnlyShortens(t *testing.T) {
	for name, l := range map[string]workqueue.RateLimiter[string]{
		"of a backoff": workqueue.Exponential[string](workqueue.Backoff{Base: time.Second, Max: time.Second, Jitter: 0.2}),
	} {
		seen := map[time.Duration]bool{}
		for _, d := range delays(l, "a", 1000) {
			require.LessOrEqual(t, d, time.Second, name)
			require.GreaterOrEqual(t, d, 800*ms, name)
			seen[d] = true
		}
		require.Greater(t, len(seen), 900, "%s: keys that failed together should be spread", name)
		require.Equal(t, 1000, l.NumRequeues("a"))
		l.Forget("a")
		require.Zero(t, l.NumRequeues("a"))
	}
}

func TestTokenBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := workqueue.TokenBucket[string](workqueue.Bucket{QPS: 10, Burst: 3})
		require.Equal(t, []time.Duration{0, 0, 0, 100 * ms, 200 * ms}, delays(l, "one", 5))
		require.Equal(t, []time.Duration{300 * ms}, delays(l, "two", 1), "one bucket for all keys")
		require.Zero(t, l.NumRequeues("one"))
		l.Forget("one")
		<-time.After(250 * ms)
		require.Equal(t, []time.Duration{150 * ms}, delays(l, "one", 1))
		<-time.After(time.Hour) // it does not fill beyond its burst
		require.Equal(t, []time.Duration{0, 0, 0, 100 * ms}, delays(l, "one", 4))
	})
}

func TestTokenBucketLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := workqueue.TokenBucket[string](workqueue.Bucket{})
		require.Equal(t, make([]time.Duration, 100), delays(l, "a", 100))
		require.Equal(t, 100*ms, l.When("a"))

		l = workqueue.TokenBucket[string](workqueue.Bucket{QPS: -1})
		require.Equal(t, make([]time.Duration, 1000), delays(l, "a", 1000))
		require.Zero(t, l.NumRequeues("a"))
		l.Forget("a")

		l = workqueue.TokenBucket[string](workqueue.Bucket{QPS: 1, Burst: -1})
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, delays(l, "a", 2))

		for _, b := range []workqueue.Bucket{{QPS: math.SmallestNonzeroFloat64}, {QPS: 1e-9, Burst: math.MaxInt}, {QPS: math.Inf(1)}, {QPS: math.NaN()}} {
			for _, d := range delays(workqueue.TokenBucket[string](b), "a", 1000) {
				require.GreaterOrEqual(t, d, time.Duration(0), "%+v", b)
			}
		}
	})
}

// By default, the delay of a key is the longer of an exponential backoff and its turn in a common bucket.
func TestDefaultLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := workqueue.New[int](workqueue.Options{}), time.Now()
		for _, want := range []time.Duration{5 * ms, 15 * ms, 35 * ms} {
			q.AddRateLimited(-1)
			require.Equal(t, []int{-1}, getAll(t, q, 1))
			require.Equal(t, want, time.Since(start))
		}
		require.Equal(t, 3, q.NumRequeues(-1))
		q.Forget(-1)
		require.Zero(t, q.NumRequeues(-1))

		<-time.After(time.Hour)
		start = time.Now()
		for key := range 110 {
			q.AddRateLimited(key)
		}
		getAll(t, q, 100)
		require.Equal(t, 5*ms, time.Since(start))
		for i := range 10 {
			require.Equal(t, []int{100 + i}, getAll(t, q, 1))
			require.Equal(t, time.Duration(i+1)*100*ms, time.Since(start))
		}
	})
}

func TestRateLimitOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](workqueue.Options{Backoff: workqueue.Backoff{Base: time.Second, Max: 3 * time.Second}})
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
			start := time.Now()
			q.AddRateLimited("a")
			getAll(t, q, 1)
			require.Equal(t, want, time.Since(start))
		}

		q = workqueue.New(workqueue.Options{}, workqueue.FastSlow[string](time.Second, time.Minute, 1))
		for _, want := range []time.Duration{time.Second, time.Minute} {
			start := time.Now()
			q.AddRateLimited("a")
			getAll(t, q, 1)
			require.Equal(t, want, time.Since(start))
		}

		q = workqueue.New(workqueue.Options{}, workqueue.FastSlow[string](time.Second, time.Second, 1), workqueue.FastSlow[string](time.Minute, time.Minute, 1))
		start := time.Now()
		q.AddRateLimited("a")
		getAll(t, q, 1)
		require.Equal(t, time.Minute, time.Since(start), "the longest delay counts")
	})
}

func TestAfterAndRateLimitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options{}, workqueue.FastSlow[string](time.Second, time.Second, 1))
		for _, after := range []time.Duration{0, ms, time.Second, time.Minute} {
			start := time.Now()
			q.AddWith("a", workqueue.Item{After: after, RateLimited: true})
			getAll(t, q, 1)
			require.Equal(t, max(after, time.Second), time.Since(start))
		}
		require.Equal(t, 4, q.NumRequeues("a"))
	})
}

// A limiter may call the queue, because the queue calls it without a lock.
func TestLimiterMayUseTheQueue(t *testing.T) {
	l := &curious{}
	q := workqueue.New[string](workqueue.Options{}, l)
	l.q = q
	q.AddRateLimited("a")
	require.Equal(t, 1, q.NumRequeues("a"))
	q.Forget("a")
	require.Equal(t, []string{"a"}, getAll(t, q, 1))
}

type curious struct{ q *workqueue.Queue[string] }

func (l *curious) When(string) time.Duration { return time.Duration(l.q.Len()) }

func (l *curious) Forget(string) { l.q.Len() }

func (l *curious) NumRequeues(string) int { return l.q.Len() }
