package workqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

// recorder keeps the values that the hooks received.
type recorder struct {
	queued, worked []time.Duration
	priorities     []int
}

func (r *recorder) metrics() *workqueue.Metrics {
	return &workqueue.Metrics{
		QueueDuration: func(d time.Duration, priority int) {
			r.queued = append(r.queued, d)
			r.priorities = append(r.priorities, priority)
		},
		WorkDuration: func(d time.Duration) { r.worked = append(r.worked, d) },
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := workqueue.New[string](workqueue.Options{Metrics: r.metrics()})
		q.Add("a")
		require.Equal(t, workqueue.Stats{Depth: 1, Adds: 1, ByPriority: map[int]int{0: 1}}, q.Stats())
		q.Add("a") // coalesces, and so does not count
		require.EqualValues(t, 1, q.Stats().Adds)
		<-time.After(50 * time.Microsecond)

		work := get(t, q)
		require.Equal(t, []time.Duration{50 * time.Microsecond}, r.queued)
		q.Add("a") // counts in the depth; its time in the queue begins
		require.Equal(t, workqueue.Stats{Depth: 1, Adds: 2, Processing: 1, ByPriority: map[int]int{0: 1}}, q.Stats())
		<-time.After(25 * time.Microsecond)
		require.Equal(t, 25*time.Microsecond, q.Stats().UnfinishedWork)
		q.Done(work.Key)
		require.Equal(t, []time.Duration{25 * time.Microsecond}, r.worked)
		require.Equal(t, workqueue.Stats{Depth: 1, Adds: 2, ByPriority: map[int]int{0: 1}}, q.Stats())

		<-time.After(10 * time.Microsecond)
		get(t, q)
		require.Equal(t, []time.Duration{50 * time.Microsecond, 35 * time.Microsecond}, r.queued)
		q.Done("a")
		require.Equal(t, []time.Duration{25 * time.Microsecond, 0}, r.worked)
		require.Equal(t, workqueue.Stats{Adds: 2, ByPriority: map[int]int{}}, q.Stats())
	})
}

// A key that will run again has the priority of its new add.
func TestDepthByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](workqueue.Options{Metrics: &workqueue.Metrics{}})
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
			get(t, q)
			<-time.After(time.Second)
		}
		q.AddWith("a", workqueue.Item{Priority: 3})
		q.AddWith("c", workqueue.Item{Priority: -100})
		q.AddWith("d", workqueue.Item{Priority: 3})
		require.Equal(t, workqueue.Stats{
			Depth: 3, ByPriority: map[int]int{3: 2, -100: 1}, Processing: 3, Adds: 6,
			UnfinishedWork: 6 * time.Second, LongestRunning: 3 * time.Second,
		}, q.Stats())
	})
}

func TestMetricsOfDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := workqueue.New[string](workqueue.Options{Metrics: r.metrics()})
		q.AddAfter("a", time.Second)
		q.AddRateLimited("b")
		q.AddWith("c", workqueue.Item{After: time.Hour, Priority: -7})
		require.Equal(t, workqueue.Stats{Delayed: 3, Retries: 3, ByPriority: map[int]int{}}, q.Stats())
		<-time.After(3 * time.Second)
		require.Equal(t, workqueue.Stats{Delayed: 1, Depth: 2, Adds: 2, Retries: 3, ByPriority: map[int]int{0: 2}}, q.Stats())
		require.Equal(t, []string{"b", "a"}, getAll(t, q, 2))
		require.Equal(t, []time.Duration{3*time.Second - 5*ms, 2 * time.Second}, r.queued, "a delay does not count as time in the queue")
		<-time.After(2 * time.Hour)
		require.Equal(t, map[int]int{-7: 1}, q.Stats().ByPriority)
		getAll(t, q, 1)
		require.Equal(t, []int{0, 0, -7}, r.priorities)
		q.AddAfter("a", -1)
		require.EqualValues(t, 3, q.Stats().Retries, "no delay, no retry")
		q.ShutDown()
		q.AddRateLimited("a")
		require.EqualValues(t, 3, q.Stats().Retries)
	})
}

func TestMetricsOfUnfinishedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](workqueue.Options{Metrics: &workqueue.Metrics{}}) // the hooks may be nil
		for _, key := range []string{"a", "b", "c"} {
			q.Add(key)
			get(t, q)
			<-time.After(time.Second)
		}
		s := q.Stats()
		require.Equal(t, 6*time.Second, s.UnfinishedWork)
		require.Equal(t, 3*time.Second, s.LongestRunning)
		q.Done("b")
		require.Equal(t, 4*time.Second, q.Stats().UnfinishedWork)
		q.Done("a")
		require.Equal(t, time.Second, q.Stats().LongestRunning)
		q.Done("c")
		requireEmpty(t, q)
		require.Zero(t, q.Stats().UnfinishedWork)
		require.Zero(t, q.Stats().LongestRunning)
	})
}

func TestStatsWithoutMetrics(t *testing.T) {
	bubble(t, func(t *testing.T, q *workqueue.Queue[string]) {
		q.Add("a")
		get(t, q)
		<-time.After(time.Second)
		require.Equal(t, workqueue.Stats{Processing: 1, Adds: 1, ByPriority: map[int]int{}}, q.Stats(), "the queue did not read the clock")
	})
}

// A hook may call the queue, because the queue calls it without a lock.
func TestHooksMayUseTheQueue(t *testing.T) {
	var q *workqueue.Queue[string]
	var lengths []int
	q = workqueue.New[string](workqueue.Options{Metrics: &workqueue.Metrics{
		QueueDuration: func(time.Duration, int) { lengths = append(lengths, q.Len()) },
		WorkDuration:  func(time.Duration) { lengths = append(lengths, q.Stats().Processing) },
	}})
	q.Add("a")
	getAll(t, q, 1)
	require.Equal(t, []int{0, 0}, lengths)
}
