package metrics

import "github.com/leatproject/leat/cachedclient"

// Gate is the part of a gate that metrics need. *cachedclient.Gate implements it.
type Gate interface {
	// Stats is called at every scrape.
	Stats() cachedclient.GateStats
}

// newGateTable returns families without a counterpart in client-go and controller-runtime, where a reconcile that comes
// too early fails.
func newGateTable(c *catalog) *table[cachedclient.GateStats] {
	t := newTable[cachedclient.GateStats](c, "controller")
	t.gauge("leat_gate_keys", "Keys with a write that no cache contains yet.", func(s cachedclient.GateStats) float64 { return float64(s.Keys) })
	t.counter("leat_gate_waits_total", "Reconciles that waited for a cache to contain the last write.", func(s cachedclient.GateStats) float64 { return float64(s.Waits) })
	t.counter("leat_gate_timeouts_total", "Reconciles that began although no cache contained the last write.", func(s cachedclient.GateStats) float64 { return float64(s.TimedOut) })
	return t
}

// Gate shows how often reconciles wait for a cache, under the name of their controller. leat_controller_gated_keys
// shows how many wait now. The error is ErrNameTaken.
func (m *Metrics) Gate(name string, g Gate) (*CollectorRegistration, error) {
	return m.add("gate", name, func() member { return &named[cachedclient.GateStats]{g, name, m.gates, g.Stats} })
}
