package workqueue

import "time"

// Metrics makes the queue measure times, and receives them. Each function may be nil. The queue calls the functions
// without a lock, on the goroutine of Get or Done, and concurrently. It corresponds to MetricsProvider of client-go;
// numbers at one moment are in Stats instead.
type Metrics struct {
	// QueueDuration gets the time from when a key became due to its hand-out: workqueue_queue_duration_seconds. The
	// time starts with the add, or with the end of its delay, even if the key was still being processed then.
	QueueDuration func(d time.Duration, priority int)
	// WorkDuration gets the time from Get to Done: workqueue_work_duration_seconds.
	WorkDuration func(d time.Duration)
}

// Stats are the numbers of a queue at one moment.
type Stats struct {
	// Depth counts the keys that are ready, and those that become ready at their Done: workqueue_depth.
	Depth int
	// ByPriority counts the same keys by priority; a priority without keys is missing. If Options.Metrics is nil, it
	// omits the keys that become ready at their Done.
	ByPriority map[int]int
	// Delayed counts the keys whose delay has not ended.
	Delayed int
	// Processing counts the keys that were handed out and are not Done.
	Processing int
	// Adds counts, since New, the adds that did not coalesce with another add. A delayed add counts when it is due:
	// workqueue_adds_total.
	Adds uint64
	// Retries counts, since New, the adds with a delay or a rate limit: workqueue_retries_total.
	Retries uint64
	// UnfinishedWork is the sum of the times since Get over all keys that are being processed:
	// workqueue_unfinished_work_seconds. It is zero if Options.Metrics is nil.
	UnfinishedWork time.Duration
	// LongestRunning is the longest of these times: workqueue_longest_running_processor_seconds. It is zero if
	// Options.Metrics is nil.
	LongestRunning time.Duration
}

// Stats returns the current numbers. Its cost grows with the number of keys that are being processed, not with the
// number of waiting keys. It replaces the goroutine that refreshes client-go's gauges every 500 ms.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{
		Depth:      q.ready.length + q.reruns,
		ByPriority: make(map[int]int, len(q.ready.classes)),
		Delayed:    q.delays.length,
		Processing: q.inWork,
		Adds:       q.adds,
		Retries:    q.retries,
	}
	for _, c := range q.ready.classes {
		if c.length > 0 {
			s.ByPriority[c.priority] = c.length
		}
	}
	if q.processing.head != 0 {
		q.addProcessing(&s)
	}
	return s
}

// addProcessing adds the times of the keys that are being processed.
func (q *Queue[K]) addProcessing(s *Stats) {
	now := q.now()
	for i := q.processing.head; i != 0; {
		e := q.table.at(i)
		s.UnfinishedWork += now - e.started
		if e.pending == rerun {
			s.ByPriority[e.priority]++
		}
		i = e.links[byAge].next
	}
	s.LongestRunning = now - q.table.at(q.processing.head).started
}
