package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ErrNameTaken says that something of the same kind has the name already; their series would be one.
var ErrNameTaken = errors.New("metrics: the name is taken")

// Metrics shows Prometheus what controllers, queues, informers, clients, electors and recorders do. Nearly all of it is
// asked for when somebody scrapes; what happens in between is only told where a distribution of times is wanted.
// It takes the place of the metrics.Registry of controller-runtime, of which there is one in a process.
type Metrics struct {
	families catalog

	controllers controllerFamilies
	queues      queueFamilies
	informers   informerFamilies
	requests    requestFamilies
	elections   electionFamilies
	recorders   recorderFamilies
	gates       gateFamilies

	mu      sync.Mutex // guards the field below
	members map[identity]member
}

// identity is what no two members share.
type identity struct{ kind, name string }

// member is something that is asked at every scrape.
type member interface {
	// collect sends the series as they are now. It is called from many goroutines at once.
	collect(to chan<- prometheus.Metric)
	// leave lets go of what was added on behalf of the member.
	leave()
}

// transient is a member that may be gone without anybody having removed it.
type transient interface{ gone() bool }

// New returns Metrics without members, registered with r. The error is that of r: somebody else, such as another Metrics,
// has registered the names there. r may add labels (prometheus.WrapRegistererWith), which tells several Metrics apart.
func New(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{members: map[identity]member{}}
	m.controllers = newControllerFamilies(&m.families)
	m.queues = newQueueFamilies(&m.families)
	m.informers = newInformerFamilies(&m.families)
	m.requests = newRequestFamilies(&m.families)
	m.elections = newElectionFamilies(&m.families)
	m.recorders = newRecorderFamilies(&m.families)
	m.gates = newGateFamilies(&m.families)
	if err := r.Register(collector{m}); err != nil {
		return nil, fmt.Errorf("metrics: register: %w", err)
	}
	return m, nil
}

// Handler answers with what g gathers, in the formats of Prometheus and OpenMetrics: it is for
// manager.AdminOptions.Metrics. What cannot be gathered does not keep the rest from being shown.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// Registration is something that is shown.
type Registration struct {
	m     *Metrics
	id    identity
	which member // nil once it is removed, so that a registration does not keep it; guarded by the lock of m
}

// Remove ends that: the next scrape finds none of its series. Removing again does nothing.
func (r *Registration) Remove() {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.which != nil && r.m.members[r.id] == r.which { // unless it was gone, and another one has its name
		r.m.drop(r.id, r.which)
	}
	r.which = nil
}

// add makes something a member. join returns it; it is not called if the name cannot be had.
func (m *Metrics) add(kind, name string, join func() member) (*Registration, error) {
	if name == "" || !utf8.ValidString(name) {
		return nil, fmt.Errorf("metrics: %s: %q cannot be a name, for a label is a text that is not empty", kind, name)
	}
	id := identity{kind, name}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, taken := m.members[id]; taken && !m.release(id, before) {
		return nil, fmt.Errorf("%w: there is a %s %q", ErrNameTaken, kind, name)
	}
	added := join()
	m.members[id] = added
	return &Registration{m: m, id: id, which: added}, nil
}

// release drops a member that is gone, and says whether it was. The lock is held.
func (m *Metrics) release(id identity, which member) bool {
	t, ok := which.(transient)
	if !ok || !t.gone() {
		return false
	}
	m.drop(id, which)
	return true
}

// drop forgets a member. The lock is held, so that nobody takes the name before its series are gone.
func (m *Metrics) drop(id identity, which member) {
	delete(m.members, id)
	which.leave()
}

// present returns the members that are not gone.
func (m *Metrics) present() []member {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []member
	for id, which := range m.members {
		if !m.release(id, which) {
			all = append(all, which)
		}
	}
	return all
}

// collector is Metrics as Prometheus sees it.
type collector struct{ m *Metrics }

// Describe sends what Metrics may show.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.m.families.descriptions {
		to <- d
	}
	for _, v := range c.m.families.vectors {
		v.Describe(to)
	}
}

// Collect asks the members, without a lock of ours: they have their own.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, which := range c.m.present() {
		which.collect(to)
	}
	for _, v := range c.m.families.vectors {
		v.Collect(to)
	}
}
