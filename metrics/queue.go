package metrics

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/workqueue"
)

// Queue is the part of a queue that metrics need. *workqueue.Queue[K] implements it for any K.
type Queue interface {
	// Name is the label of the series.
	Name() string
	// Stats is called at every scrape.
	Stats() workqueue.Stats
}

// queueFamilies have the names of client-go's families, with the labels of controller-runtime.
type queueFamilies struct {
	*table[workqueue.Stats]

	depth          family
	queued, worked *prometheus.HistogramVec
}

func newQueueFamilies(c *catalog) queueFamilies {
	t := newTable[workqueue.Stats](c, "name", "controller")
	t.counter("workqueue_adds_total", "Adds that did not coalesce with another.", func(s workqueue.Stats) float64 { return float64(s.Adds) })
	t.counter("workqueue_retries_total", "Adds with a delay or a rate limit.", func(s workqueue.Stats) float64 { return float64(s.Retries) })
	t.gauge("workqueue_unfinished_work_seconds", "Sum of the times since the start of processing, over all keys that are being processed.", func(s workqueue.Stats) float64 { return s.UnfinishedWork.Seconds() })
	t.gauge("workqueue_longest_running_processor_seconds", "Longest time since the start of processing, over all keys that are being processed.", func(s workqueue.Stats) float64 { return s.LongestRunning.Seconds() })
	t.gauge("leat_workqueue_delayed", "Keys whose delay has not ended.", func(s workqueue.Stats) float64 { return float64(s.Delayed) })
	buckets := prometheus.ExponentialBuckets(10e-9, 10, 12)
	return queueFamilies{
		table:  t,
		depth:  c.gauge("workqueue_depth", "Keys that are ready, or become ready when their processing ends, by priority.", "name", "controller", "priority"),
		queued: c.histogram("workqueue_queue_duration_seconds", "Time from when a key is ready until a worker takes it.", buckets, t.labels...),
		worked: c.histogram("workqueue_work_duration_seconds", "Time that keys are being processed.", buckets, t.labels...),
	}
}

// Queue shows a queue without a controller, under its Options.Name. The error is ErrNameTaken, also if a controller has
// that name. QueueTimes adds the histograms of times.
func (m *Metrics) Queue(q Queue) (*CollectorRegistration, error) {
	name := q.Name()
	return m.add("controller", name, func() member { return newShownQueue(m, name, q) })
}

// QueueTimes returns functions that observe the times of a queue. Use it for workqueue.Options.Metrics, with the
// queue's name. The queue of a controller does not need it.
func (m *Metrics) QueueTimes(name string) *workqueue.Metrics {
	queued, worked := newShownQueue(m, name, nil).observers()
	return &workqueue.Metrics{
		QueueDuration: func(d time.Duration, _ int) { queued.Observe(d.Seconds()) },
		WorkDuration:  func(d time.Duration) { worked.Observe(d.Seconds()) },
	}
}

// maxPriorities is the number of a queue's priorities that have a series of their own, as in controller-runtime.
const maxPriorities = 25

// otherPriorities is the label of all further priorities.
const otherPriorities = "exceeded_cardinality_limit"

// shownQueue collects the series of a queue.
type shownQueue struct {
	m    *Metrics
	name string
	q    Queue // nil for the queue of a controller

	mu         sync.Mutex // guards the field below
	priorities []int      // priorities that were shown; their series fall to zero instead of vanishing
}

func newShownQueue(m *Metrics, name string, q Queue) *shownQueue {
	return &shownQueue{m: m, name: name, q: q, priorities: []int{0}}
}

func (s *shownQueue) observers() (queued, worked prometheus.Observer) {
	f := &s.m.queues
	return f.queued.WithLabelValues(s.name, s.name), f.worked.WithLabelValues(s.name, s.name)
}

func (s *shownQueue) subject() any { return s.q }

func (s *shownQueue) leave() {
	s.m.queues.queued.DeleteLabelValues(s.name, s.name)
	s.m.queues.worked.DeleteLabelValues(s.name, s.name)
}

func (s *shownQueue) collect(to chan<- prometheus.Metric) { s.send(to, s.q.Stats()) }

func (s *shownQueue) send(to chan<- prometheus.Metric, n workqueue.Stats) {
	f := &s.m.queues
	for priority, depth := range s.depths(n) {
		f.depth.send(to, float64(depth), s.name, s.name, priority)
	}
	f.send(to, n, s.name)
}

// depths returns the depth for each label of a priority.
func (s *shownQueue) depths(n workqueue.Stats) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]int{}
	rest := n.Depth
	for _, priority := range s.note(n.ByPriority) {
		depth := n.ByPriority[priority]
		all[strconv.Itoa(priority)] = depth
		rest -= depth
	}
	for priority, depth := range n.ByPriority {
		if !slices.Contains(s.priorities, priority) {
			all[otherPriorities] += depth
			rest -= depth
		}
	}
	all["0"] += max(rest, 0) // keys that will run again; a queue without Metrics does not know their priority
	return all
}

// note records the current priorities, the most urgent first, while there is room. The caller holds the lock.
func (s *shownQueue) note(now map[int]int) []int {
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(now))) {
		if len(s.priorities) < maxPriorities && !slices.Contains(s.priorities, priority) {
			s.priorities = append(s.priorities, priority)
		}
	}
	return s.priorities
}
