package metrics

import "github.com/prometheus/client_golang/prometheus"

// Elector is the part of an elector that metrics need. *leaderelection.Elector implements it.
type Elector interface {
	// Leading is called at every scrape.
	Leading() bool
}

// electionFamilies have the names of client-go's families.
type electionFamilies struct {
	*table[bool]

	slowPath *prometheus.CounterVec
}

func newElectionFamilies(c *catalog) electionFamilies {
	t := newTable[bool](c, "name")
	t.gauge("leader_election_master_status", "1 on the replica that leads, 0 on the others.", one)
	return electionFamilies{t, c.counts("leader_election_slowpath_total", "Renewals that had to read the lease first.", "name")}
}

// Elector shows whether this replica leads, under the name of its lease. The error is ErrNameTaken.
func (m *Metrics) Elector(name string, e Elector) (*CollectorRegistration, error) {
	return m.add("elector", name, func() member {
		return &shownElector{named[bool]{e, name, m.elections.table, e.Leading}, m}
	})
}

// SlowPath returns a function that counts the renewals that had to read the lease first. Use it for
// leaderelection.Options.OnSlowPath. The series is removed together with the Elector of that name.
func (m *Metrics) SlowPath(name string) func() { return m.elections.slowPath.WithLabelValues(name).Inc }

// shownElector collects the series of an elector.
type shownElector struct {
	named[bool]
	m *Metrics
}

func (s *shownElector) leave() { s.m.elections.slowPath.DeleteLabelValues(s.name) }
