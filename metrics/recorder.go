package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/reconcile/events"
)

// Recorder is the part of a recorder that metrics need. *events.Recorder implements it.
type Recorder interface {
	// Stats is called at every scrape.
	Stats() events.Stats
}

// recorderFamilies have no counterpart in client-go and controller-runtime.
type recorderFamilies struct{ told, dropped, spam, written, failed, waiting family }

func newRecorderFamilies(c *catalog) recorderFamilies {
	return recorderFamilies{
		told:    c.counter("leat_recorder_events_total", "Events that the recorder received.", "recorder"),
		dropped: c.counter("leat_recorder_dropped_total", "Events that were dropped because the queue was full.", "recorder"),
		spam:    c.counter("leat_recorder_spam_total", "Events that were dropped because there were too many about one object.", "recorder"),
		written: c.counter("leat_recorder_writes_total", "Events and updates of series that were written.", "recorder"),
		failed:  c.counter("leat_recorder_failures_total", "Events and updates of series that could not be written.", "recorder"),
		waiting: c.gauge("leat_recorder_waiting", "Events that wait to be written.", "recorder"),
	}
}

// Recorder shows what happens to Events, under a name such as that of their controller. The error is ErrNameTaken.
func (m *Metrics) Recorder(name string, r Recorder) (*CollectorRegistration, error) {
	return m.add("recorder", name, func() member { return &shownRecorder{m, name, r} })
}

// shownRecorder collects the series of a recorder.
type shownRecorder struct {
	m    *Metrics
	name string
	r    Recorder
}

func (s *shownRecorder) subject() any { return s.r }

func (s *shownRecorder) leave() {}

func (s *shownRecorder) collect(to chan<- prometheus.Metric) {
	f, n := &s.m.recorders, s.r.Stats()
	f.told.send(to, float64(n.Recorded), s.name)
	f.dropped.send(to, float64(n.Dropped), s.name)
	f.spam.send(to, float64(n.Spam), s.name)
	f.written.send(to, float64(n.Written), s.name)
	f.failed.send(to, float64(n.Failed), s.name)
	f.waiting.send(to, float64(n.Waiting), s.name)
}
