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
	reconciles, errors, terminal, panics, timeouts, workers, active family
	duration                                                        *prometheus.HistogramVec

	exhausted, sourcePanics, synced, gated family
	latency                                *prometheus.HistogramVec
}

// These are the stages from an event to the end of its reconcile, as values of the label of leat_event_latency_seconds.
const (
	stageQueued  = "queued"
	stageStarted = "started"
	stageDone    = "done"
)

func newControllerFamilies(c *catalog) controllerFamilies {
	return controllerFamilies{
		reconciles: c.counter("controller_runtime_reconcile_total", "Reconciles, by result.", "controller", "result"),
		errors:     c.counter("controller_runtime_reconcile_errors_total", "Reconciles that failed.", "controller"),
		terminal:   c.counter("controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed and are not retried.", "controller"),
		panics:     c.counter("controller_runtime_reconcile_panics_total", "Reconciles that panicked.", "controller"),
		timeouts:   c.counter("controller_runtime_reconcile_timeouts_total", "Reconciles that exceeded their timeout.", "controller"),
		workers:    c.gauge("controller_runtime_max_concurrent_reconciles", "Number of keys that may be reconciled at once.", "controller"),
		active:     c.gauge("controller_runtime_active_workers", "Number of keys that are being reconciled.", "controller"),
		duration: c.histogram("controller_runtime_reconcile_time_seconds", "Duration of reconciles.", []float64{
			0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75,
			2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
		}, "controller"),

		exhausted:    c.counter("leat_controller_retries_exhausted_total", "Keys that were dropped after their last retry.", "controller"),
		sourcePanics: c.counter("leat_controller_source_panics_total", "Panics of predicates, map functions, sources and gates.", "controller"),
		synced:       c.gauge("leat_controller_synced", "1 if every source has added the keys of its initial list.", "controller"),
		gated:        c.gauge("leat_controller_gated_keys", "Keys that a gate holds back. The queue does not contain them.", "controller"),
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
	f, name, n := &s.m.controllers, s.c.Name(), s.c.Stats()
	failed := n.Failed + n.Terminal + n.Dropped
	for result, count := range map[string]int64{
		"success": n.Succeeded, "error": failed, "requeue_after": n.Requeued, "requeue": 0, "cancelled": n.Cancelled,
	} {
		f.reconciles.send(to, float64(count), name, result)
	}
	f.errors.send(to, float64(failed), name)
	f.terminal.send(to, float64(n.Terminal), name)
	f.panics.send(to, float64(n.Panics), name)
	f.timeouts.send(to, float64(n.Timeouts), name)
	f.workers.send(to, float64(n.Workers), name)
	f.active.send(to, float64(n.ActiveWorkers), name)
	f.exhausted.send(to, float64(n.Dropped), name)
	f.sourcePanics.send(to, float64(n.SourcePanics), name)
	f.synced.sendBool(to, n.Synced, name)
	f.gated.send(to, float64(n.Gated), name)
	s.queue.send(to, n.Queue)
}
