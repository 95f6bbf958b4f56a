package workqueue

import "time"

// Metrics switches the measuring of times on and says who is told of them. Its functions may be nil; they are called
// without any lock of the queue, on the goroutine of Get or Done, and from many at once.
// It corresponds to MetricsProvider of client-go; what is a number at a moment is asked for with Stats instead.
type Metrics struct {
	// QueueDuration is told how long a key was ready before it was handed out: workqueue_queue_duration_seconds. The
	// time counts from when the key was added, or due, even while the key was still being processed.
	QueueDuration func(d time.Duration, priority int)
	// WorkDuration is told how long it was from Get to Done: workqueue_work_duration_seconds.
	WorkDuration func(d time.Duration)
}

func (m *Metrics) observeQueued(d time.Duration, priority int) {
	if m.QueueDuration != nil {
		m.QueueDuration(d, priority)
	}
}

func (m *Metrics) observeWorked(d time.Duration) {
	if m.WorkDuration != nil {
		m.WorkDuration(d)
	}
}

// Stats are the numbers of a queue at one moment.
type Stats struct {
	// Depth counts the keys that are ready, and those that will be when their processing is Done: workqueue_depth.
	Depth int
	// ByPriority counts the same keys by priority; a priority without keys is missing. If Options.Metrics is nil, those
	// that are not ready yet are left out.
	ByPriority map[int]int
	// Delayed counts the keys that wait for their time.
	Delayed int
	// Processing counts the keys that were handed out and are not Done.
	Processing int
	// Adds counts, since New, the adds that did not coalesce with another; a delayed one counts when it is due:
	// workqueue_adds_total.
	Adds uint64
	// Retries counts, since New, the adds with a delay or a rate limit: workqueue_retries_total.
	Retries uint64
	// UnfinishedWork is how long the keys that are being processed have been so, together:
	// workqueue_unfinished_work_seconds. It is zero if Options.Metrics is nil.
	UnfinishedWork time.Duration
	// LongestRunning is the longest of these times: workqueue_longest_running_processor_seconds. It is zero if
	// Options.Metrics is nil.
	LongestRunning time.Duration
}

// Stats returns the numbers as they are now. It takes a time that grows with the number of keys that are being
// processed, not of those that wait.
// It takes the place of the goroutine with which client-go refreshes its gauges every 500 ms.
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

// addProcessing adds what is known of the keys that are being processed.
func (q *Queue[K]) addProcessing(s *Stats) {
	now := q.now()
	for i := q.processing.head; i != 0; {
		e := q.slab.at(i)
		s.UnfinishedWork += time.Duration(now - e.started)
		if e.pending == rerun {
			s.ByPriority[e.priority]++
		}
		i = e.links[byAge].next
	}
	s.LongestRunning = time.Duration(now - q.slab.at(q.processing.head).started)
}
