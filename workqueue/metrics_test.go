package workqueue_test

import (
	"testing"
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
