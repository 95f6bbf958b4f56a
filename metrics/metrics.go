package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/reconcile/events"
	"github.com/leatproject/leat/scale/shard"
)

// ErrNameTaken reports that another member of the same kind has the name; both would write the same series.
var ErrNameTaken = errors.New("metrics: the name is taken")

// Metrics shows Prometheus the state of controllers, queues, informers, clients, electors, recorders, shards, webhooks
// and recordings. It reads nearly everything at a scrape. Only histograms need a call between scrapes. It replaces the
// metrics.Registry of controller-runtime, which is global to the process.
type Metrics struct {
	families catalog

	controllers controllerFamilies
	queues      queueFamilies
	informers   informerFamilies
	requests    requestFamilies
	elections   electionFamilies
	recorders   *table[events.Stats]
	gates       *table[cachedclient.GateStats]
	masks       *table[codec.MaskStats]
	shards      *table[shard.Status]
	webhooks    webhookFamilies
	recordings  *table[recordingState]

	mu      sync.Mutex // guards the field below
	members map[identity]member
}

// identity is unique among the members.
type identity struct{ kind, name string }

// member is something that is read at every scrape.
type member interface {
	// collect sends the current series. It may be called concurrently.
	collect(to chan<- prometheus.Metric)
	// subject returns the controller, informer or other value that the member shows.
	subject() any
	// leave removes the functions and series that were added for the member.
	leave()
}

// transient is a member that may end without Remove.
type transient interface{ gone() bool }

// New returns Metrics without members, registered with r. The error comes from r: the names are already registered
// there, for instance by another Metrics. Use prometheus.WrapRegistererWith to add labels that distinguish several
// Metrics.
func New(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{members: map[identity]member{}}
	m.controllers = newControllerFamilies(&m.families)
	m.queues = newQueueFamilies(&m.families)
	m.informers = newInformerFamilies(&m.families)
	m.requests = newRequestFamilies(&m.families)
	m.elections = newElectionFamilies(&m.families)
	m.recorders = newRecorderTable(&m.families)
	m.gates = newGateTable(&m.families)
	m.masks = newMaskTable(&m.families)
	m.shards = newShardTable(&m.families)
	m.webhooks = newWebhookFamilies(&m.families)
	m.recordings = newRecordingTable(&m.families)
	if err := r.Register(collector{m}); err != nil {
		return nil, fmt.Errorf("metrics: register: %w", err)
	}
	return m, nil
}

// Handler serves the metrics that g gathers, in the formats of Prometheus and OpenMetrics. Use it for
// manager.AdminOptions.Metrics. If one metric cannot be gathered, it still serves the others.
func Handler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// Registration is one member of Metrics.
type CollectorRegistration struct {
	m     *Metrics
	id    identity
	which member // nil after Remove, so that the registration does not keep it in memory; guarded by the lock of m
}

// Remove removes the member: the next scrape shows none of its series. A second Remove does nothing.
func (r *CollectorRegistration) Remove() {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.which != nil && r.m.members[r.id] == r.which { // false if the member was gone and another one has its name
		r.m.drop(r.id, r.which)
	}
	r.which = nil
}

// add adds a member. join returns the member; it is not called if the name is taken.
func (m *Metrics) add(kind, name string, join func() member) (*CollectorRegistration, error) {
	if name == "" || !utf8.ValidString(name) {
		return nil, fmt.Errorf("metrics: %s: the name %q must be valid UTF-8 and not empty", kind, name)
	}
	id := identity{kind, name}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, taken := m.members[id]; taken && !m.release(id, before) {
		return nil, fmt.Errorf("%w: there is a %s %q", ErrNameTaken, kind, name)
	}
	added := join()
	m.members[id] = added
	return &CollectorRegistration{m: m, id: id, which: added}, nil
}

// release removes a member that has ended, and reports whether it had. The caller holds the lock.
func (m *Metrics) release(id identity, which member) bool {
	t, ok := which.(transient)
	if !ok || !t.gone() {
		return false
	}
	m.drop(id, which)
	return true
}

// drop removes a member. The caller holds the lock, so that no other member takes the name before its series are
// removed.
func (m *Metrics) drop(id identity, which member) {
	delete(m.members, id)
	which.leave()
}

// present returns the members that have not ended.
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

// collector implements prometheus.Collector.
type collector struct{ m *Metrics }

// Describe sends everything that Metrics may show.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.m.families.descriptions {
		to <- d
	}
	for _, v := range c.m.families.vectors {
		v.Describe(to)
	}
}

// Collect reads the members. It holds no lock of Metrics, because the members have their own.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, which := range c.m.present() {
		which.collect(to)
	}
	for _, v := range c.m.families.vectors {
		v.Collect(to)
	}
}
