package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/client"
)

// Gate is what is asked of a gate. *client.Gate is one.
type Gate interface {
	// Stats is asked for at every scrape.
	Stats() client.GateStats
}

// gateFamilies are what neither client-go nor controller-runtime shows: there a sync that comes too early fails.
type gateFamilies struct{ keys, waits, timeouts family }

func newGateFamilies(c *catalog) gateFamilies {
	return gateFamilies{
		keys:     c.gauge("leat_gate_keys", "Keys of which a write is remembered, because no cache has shown it yet.", "controller"),
		waits:    c.counter("leat_gate_waits_total", "Reconciles that waited for a cache to show what the last one wrote.", "controller"),
		timeouts: c.counter("leat_gate_timeouts_total", "Reconciles that went on although no cache had shown it.", "controller"),
	}
}

// Gate shows how often reconciles wait for a cache, under the name of their controller. How many wait now is
// leat_controller_gated_keys. The error is ErrNameTaken.
func (m *Metrics) Gate(name string, g Gate) (*Registration, error) {
	return m.add("gate", name, func() member { return &shownGate{m, name, g} })
}

// shownGate is a gate that is asked.
type shownGate struct {
	m    *Metrics
	name string
	g    Gate
}

func (s *shownGate) leave() {}

func (s *shownGate) collect(to chan<- prometheus.Metric) {
	f, n := &s.m.gates, s.g.Stats()
	f.keys.send(to, float64(n.Keys), s.name)
	f.waits.send(to, float64(n.Waits), s.name)
	f.timeouts.send(to, float64(n.TimedOut), s.name)
}
