package metrics

import "github.com/prometheus/client_golang/prometheus"

// Elector is the part of an elector that metrics need. *leaderelection.Elector implements it.
type Elector interface {
	// Leading is called at every scrape.
	Leading() bool
}

// electionFamilies have the names of client-go's families.
type electionFamilies struct {
	leading  family
	slowPath *prometheus.CounterVec
}

func newElectionFamilies(c *catalog) electionFamilies {
	return electionFamilies{
		leading:  c.gauge("leader_election_master_status", "1 on the replica that leads, 0 on the others.", "name"),
		slowPath: c.counts("leader_election_slowpath_total", "Renewals that had to read the lease first.", "name"),
	}
}

// Elector shows whether this replica leads, under the name of its lease. The error is ErrNameTaken.
func (m *Metrics) Elector(name string, e Elector) (*CollectorRegistration, error) {
	return m.add("elector", name, func() member { return &shownElector{m, name, e} })
}

// SlowPath returns a function that counts the renewals that had to read the lease first. Use it for
// leaderelection.Options.OnSlowPath. The series is removed together with the Elector of that name.
func (m *Metrics) SlowPath(name string) func() { return m.elections.slowPath.WithLabelValues(name).Inc }

// shownElector collects the series of an elector.
type shownElector struct {
	m    *Metrics
	name string
	e    Elector
}

func (s *shownElector) subject() any { return s.e }

func (s *shownElector) leave() { s.m.elections.slowPath.DeleteLabelValues(s.name) }

func (s *shownElector) collect(to chan<- prometheus.Metric) {
	s.m.elections.leading.send(to, one(s.e.Leading()), s.name)
}
