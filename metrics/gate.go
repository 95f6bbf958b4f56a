package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/cachedclient"
)

// Gate is the part of a gate that metrics need. *cachedclient.Gate implements it.
type Gate interface {
	// Stats is called at every scrape.
	Stats() cachedclient.GateStats
}

// gateFamilies have no counterpart in client-go and controller-runtime, where a reconcile that comes too early fails.
type gateFamilies struct{ keys, waits, timeouts family }

func newGateFamilies(c *catalog) gateFamilies {
	return gateFamilies{
		keys:     c.gauge("leat_gate_keys", "Keys with a write that no cache contains yet.", "controller"),
		waits:    c.counter("leat_gate_waits_total", "Reconciles that waited for a cache to contain the last write.", "controller"),
		timeouts: c.counter("leat_gate_timeouts_total", "Reconciles that began although no cache contained the last write.", "controller"),
	}
}

// Gate shows how often reconciles wait for a cache, under the name of their controller. leat_controller_gated_keys
// shows how many wait now. The error is ErrNameTaken.
func (m *Metrics) Gate(name string, g Gate) (*CollectorRegistration, error) {
	return m.add("gate", name, func() member { return &shownGate{m, name, g} })
}

// shownGate collects the series of a gate.
type shownGate struct {
	m    *Metrics
	name string
	g    Gate
}

func (s *shownGate) subject() any { return s.g }

func (s *shownGate) leave() {}

func (s *shownGate) collect(to chan<- prometheus.Metric) {
	f, n := &s.m.gates, s.g.Stats()
	f.keys.send(to, float64(n.Keys), s.name)
	f.waits.send(to, float64(n.Waits), s.name)
	f.timeouts.send(to, float64(n.TimedOut), s.name)
}
