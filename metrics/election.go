package metrics

import "github.com/prometheus/client_golang/prometheus"

// Elector is what is asked of an elector. *leaderelection.Elector is one.
type Elector interface {
	// Leading is asked for at every scrape.
	Leading() bool
}

// electionFamilies have the names of client-go's.
type electionFamilies struct {
	leading  family
	slowPath *prometheus.CounterVec
}

func newElectionFamilies(c *catalog) electionFamilies {
	return electionFamilies{
		leading:  c.gauge("leader_election_master_status", "1 on the replica that leads, 0 on the others.", "name"),
		slowPath: c.counts("leader_election_slowpath_total", "Renewals of a lease for which it had to be read first.", "name"),
	}
}

// Elector shows whether this replica leads, under the name of its lease. The error is ErrNameTaken.
func (m *Metrics) Elector(name string, e Elector) (*Registration, error) {
	return m.add("elector", name, func() member { return &shownElector{m, name, e} })
}

// SlowPath counts the renewals for which a lease had to be read first; it is for leaderelection.Options.OnSlowPath. The
// series goes with the Elector of that name.
func (m *Metrics) SlowPath(name string) func() { return m.elections.slowPath.WithLabelValues(name).Inc }

// shownElector is an elector that is asked.
type shownElector struct {
	m    *Metrics
	name string
	e    Elector
}

func (s *shownElector) leave() { s.m.elections.slowPath.DeleteLabelValues(s.name) }

func (s *shownElector) collect(to chan<- prometheus.Metric) {
	s.m.elections.leading.sendBool(to, s.e.Leading(), s.name)
}
