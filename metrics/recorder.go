package metrics

import "github.com/leatproject/leat/reconcile/events"

// Recorder is the part of a recorder that metrics need. *events.Recorder implements it.
type Recorder interface {
	// Stats is called at every scrape.
	Stats() events.Stats
}

// newRecorderTable returns families without a counterpart in client-go and controller-runtime.
func newRecorderTable(c *catalog) *table[events.Stats] {
	t := newTable[events.Stats](c, "recorder")
	t.counter("leat_recorder_events_total", "Events that the recorder received.", func(s events.Stats) float64 { return float64(s.Recorded) })
	t.counter("leat_recorder_dropped_total", "Events that were dropped because the queue was full.", func(s events.Stats) float64 { return float64(s.Dropped) })
	t.counter("leat_recorder_spam_total", "Events that were dropped because there were too many about one object.", func(s events.Stats) float64 { return float64(s.Spam) })
	t.counter("leat_recorder_writes_total", "Events and updates of series that were written.", func(s events.Stats) float64 { return float64(s.Written) })
	t.counter("leat_recorder_failures_total", "Events and updates of series that could not be written.", func(s events.Stats) float64 { return float64(s.Failed) })
	t.gauge("leat_recorder_waiting", "Events that wait to be written.", func(s events.Stats) float64 { return float64(s.Waiting) })
	return t
}

// Recorder shows what happens to Events, under a name such as that of their controller. The error is ErrNameTaken.
func (m *Metrics) Recorder(name string, r Recorder) (*CollectorRegistration, error) {
	return m.add("recorder", name, func() member { return &named[events.Stats]{r, name, m.recorders, r.Stats} })
}
