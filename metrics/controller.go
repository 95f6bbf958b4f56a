package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/controller"
)

// Controller is the part of a controller that metrics need. *controller.Controller[K] implements it for any K.
type Controller interface {
	// Name is the label of the series.
	Name() string
	// Stats is called at every scrape.
	Stats() controller.Stats
	// Trace makes the controller call a function after every reconcile.
	Trace(t controller.Trace) (stop func())
}

// controllerFamilies have the names of controller-runtime's families, and some of their own.
type controllerFamilies struct {
	*table[controller.Stats]

	duration, latency *prometheus.HistogramVec
}

// These are the stages from an event to the end of its reconcile, as values of the label of leat_event_latency_seconds.
const (
	stageQueued  = "queued"
	stageStarted = "started"
	stageDone    = "done"
)

func newControllerFamilies(c *catalog) controllerFamilies {
	t := newTable[controller.Stats](c, "controller")
	failed := func(s controller.Stats) float64 { return float64(s.Failed + s.Terminal + s.Dropped) }
	reconciles := t.counterOf("result", "controller_runtime_reconcile_total", "Reconciles, by result.")
	reconciles("success", func(s controller.Stats) float64 { return float64(s.Succeeded) })
	reconciles("error", failed)
	reconciles("requeue_after", func(s controller.Stats) float64 { return float64(s.Requeued) })
	reconciles("requeue", func(controller.Stats) float64 { return 0 })
	reconciles("cancelled", func(s controller.Stats) float64 { return float64(s.Cancelled) })
	t.counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.", failed)
	t.counter("controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed and are not retried.", func(s controller.Stats) float64 { return float64(s.Terminal) })
	t.counter("controller_runtime_reconcile_panics_total", "Reconciles that panicked.", func(s controller.Stats) float64 { return float64(s.Panics) })
	t.counter("controller_runtime_reconcile_timeouts_total", "Reconciles that exceeded their timeout.", func(s controller.Stats) float64 { return float64(s.Timeouts) })
	t.gauge("controller_runtime_max_concurrent_reconciles", "Number of keys that may be reconciled at once.", func(s controller.Stats) float64 { return float64(s.Workers) })
	t.gauge("controller_runtime_active_workers", "Number of keys that are being reconciled.", func(s controller.Stats) float64 { return float64(s.ActiveWorkers) })
	t.counter("leat_controller_retries_exhausted_total", "Keys that were dropped after their last retry.", func(s controller.Stats) float64 { return float64(s.Dropped) })
	t.counter("leat_controller_source_panics_total", "Panics of predicates, map functions, sources and gates.", func(s controller.Stats) float64 { return float64(s.SourcePanics) })
	t.gauge("leat_controller_synced", "1 if every source has added the keys of its initial list.", func(s controller.Stats) float64 { return one(s.Synced) })
	t.gauge("leat_controller_gated_keys", "Keys that a gate holds back. The queue does not contain them.", func(s controller.Stats) float64 { return float64(s.Gated) })
	return controllerFamilies{
		table: t,
		duration: c.histogram("controller_runtime_reconcile_time_seconds", "Duration of reconciles.", []float64{
			0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75,
			2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
		}, "controller"),
		latency: c.histogram("leat_event_latency_seconds",
			"Time from receiving an event until its key was ready in the queue (queued), the reconcile began (started) and ended (done); first attempts only.",
			latencyBuckets(), "controller", "stage"),
	}
}

// Controller shows a controller and its queue from now on, under the controller's name. It may be called at any time.
// The error is ErrNameTaken.
//
// The series have the names of controller-runtime and client-go: controller_runtime_* and workqueue_*. The results in
// controller_runtime_reconcile_total are success, error, requeue_after, cancelled (not an error here) and requeue
// (always 0). The histograms contain reconciles that end from now on. Only leat has leat_event_latency_seconds: the
// time from an event to its reconcile.
func (m *Metrics) Controller(c Controller) (*CollectorRegistration, error) {
	name := c.Name()
	return m.add("controller", name, func() member {
		s := &shownController{m: m, c: c, queue: newShownQueue(m, name, nil)}
		s.stop = c.Trace(controller.Trace{Reconciled: s.observer()})
		return s
	})
}

// shownController collects the series of a controller.
type shownController struct {
	m     *Metrics
	c     Controller
	queue *shownQueue
	stop  func()
}

// observer returns the function that is called after every reconcile. It does no look-up and does not allocate.
func (s *shownController) observer() func(controller.Reconciled) {
	f, name := &s.m.controllers, s.c.Name()
	duration := f.duration.WithLabelValues(name)
	queued, worked := s.queue.observers()
	untilQueued := f.latency.WithLabelValues(name, stageQueued)
	untilStarted := f.latency.WithLabelValues(name, stageStarted)
	untilDone := f.latency.WithLabelValues(name, stageDone)
	return func(r controller.Reconciled) {
		t := r.Times()
		observeSince(duration, t.Started, t.Done)
		observeSince(queued, t.Ready, t.Started)
		observeSince(worked, t.Started, t.Done)
		observeSince(untilQueued, t.Received, t.Ready)
		observeSince(untilStarted, t.Received, t.Started)
		observeSince(untilDone, t.Received, t.Done)
	}
}

func (s *shownController) subject() any { return s.c }

func (s *shownController) leave() {
	s.stop()
	name := s.c.Name()
	s.m.controllers.duration.DeleteLabelValues(name)
	s.m.controllers.latency.DeletePartialMatch(prometheus.Labels{"controller": name})
	s.queue.leave()
}

func (s *shownController) collect(to chan<- prometheus.Metric) {
	n := s.c.Stats()
	s.m.controllers.send(to, n, s.c.Name())
	s.queue.send(to, n.Queue)
}
