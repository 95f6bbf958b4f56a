package metrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// Informer is the part of an informer that metrics need. *informer.Informer[T] and *factory.Share[T] implement it.
type Informer interface {
	// Status is called at every scrape.
	Status() informer.Status
	// Trace makes the informer call a function after every batch.
	Trace(t informer.Trace) (stop func())
	// Stopped returns a channel that is closed when the informer has stopped.
	Stopped() <-chan struct{}
}

// informerFamilies have no counterpart in client-go and controller-runtime, except version.
type informerFamilies struct {
	*table[informer.Status]

	version, missedInScope              family
	pending, handlerPanic, handlerStuck family
	stored                              *prometheus.HistogramVec
}

func newInformerFamilies(c *catalog) informerFamilies {
	t := newTable[informer.Status](c, "informer")
	t.gauge("leat_informer_synced", "1 if the cache holds the first list.", func(s informer.Status) float64 { return one(s.Synced) })
	t.gauge("leat_informer_failing", "1 if the last list or watch has failed.", func(s informer.Status) float64 { return one(s.Reflector.Err != nil) })
	t.gauge("leat_informer_objects", "Objects in the cache.", func(s informer.Status) float64 { return float64(s.Objects) })
	t.gauge("leat_informer_age_seconds", "Time since the last event, bookmark or list of the server.", func(s informer.Status) float64 { return age(s.HeardAt) })
	t.gauge("leat_informer_undecodable_objects", "Objects whose newest state could not be decoded.", func(s informer.Status) float64 { return float64(s.Undecodable) })
	t.counter("leat_informer_lists_total", "Complete lists.", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Lists) })
	t.counter("leat_informer_events_total", "Events received.", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Events) })
	t.counter("leat_informer_bookmarks_total", "Bookmarks received.", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Bookmarks) })
	t.counter("leat_informer_expired_total", "Requests that the server ended with 410 because their version was too old.", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Expired) })
	t.counter("leat_informer_stale_events_total", "Events that were dropped because a newer state was known.", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Stale) })
	t.counter("leat_informer_undecodable_events_total", "States that could not be decoded.", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Undecodable) })
	t.counter("leat_informer_backwards_total", "Answers with an older version than the one already reached.", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Backwards) })
	t.counter("leat_informer_dropped_total", "Objects and events of other shards that the server sent and the client dropped.", func(s informer.Status) float64 { return float64(s.Shard.Dropped) })
	t.counter("leat_informer_checks_total", "Consistency checks that have ended.", func(s informer.Status) float64 { return float64(s.Check.Checks) })
	t.counter("leat_informer_missed_changes_total", "Changes that a consistency check found and that the server had not sent.", func(s informer.Status) float64 { return float64(s.Check.Missed) })
	requests := t.counterOf("verb", "leat_informer_requests_total", "Requests: WatchLists, pages of lists, watches, probes of the server's version.")
	requests("watchlist", func(s informer.Status) float64 { return float64(s.Reflector.Counters.WatchLists) })
	requests("list", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Pages) })
	requests("watch", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Watches) })
	requests("probe", func(s informer.Status) float64 { return float64(s.Reflector.Counters.Probes) })
	return informerFamilies{
		table:   t,
		version: c.gauge("informer_store_resource_version", "The last 15 digits of the version of the cache.", "name", "group", "version", "resource"),
		missedInScope: c.counter("leat_informer_scope_missed_changes_total",
			"The part of leat_informer_missed_changes_total that belongs to a present scope.", "informer", "scope"),
		pending:      c.gauge("leat_informer_handler_pending", "Notifications that a handler has not received yet.", "informer", "handler"),
		handlerPanic: c.counter("leat_informer_handler_panics_total", "Calls of a handler that panicked.", "informer", "handler"),
		handlerStuck: c.gauge("leat_informer_handler_stuck_seconds", "How long the present call of a handler has taken, if that is longer than StuckAfter, else 0.", "informer", "handler"),
		stored: c.histogram("leat_informer_store_latency_seconds",
			"Time from receiving the first event of a batch until the cache contained the batch.", latencyBuckets(), "informer"),
	}
}

// Informer shows an informer from now on, under the given name, or under the name of its resource if the name is "". It
// may be called at any time. The error is ErrNameTaken; two informers of one resource need names. An informer that has
// stopped is not shown any more, and its name is free. Metrics keeps a reference to it until the next scrape, or until
// it is removed. It corresponds to InformerMetricsProvider of client-go.
func (m *Metrics) Informer(name string, i Informer) (*CollectorRegistration, error) {
	if name == "" {
		name = i.Status().Resource.String()
	}
	return m.add("informer", name, func() member {
		stored := m.informers.stored.WithLabelValues(name)
		return &shownInformer{m: m, name: name, i: i, stop: i.Trace(informer.Trace{Batch: func(b informer.TracedBatch) {
			if b.Objects > 0 {
				observeSince(stored, b.Received, time.Now())
			}
		}})}
	})
}

// shownInformer collects the series of an informer.
type shownInformer struct {
	m    *Metrics
	name string
	i    Informer
	stop func()
}

func (s *shownInformer) gone() bool { return runstate.IsClosed(s.i.Stopped()) }

func (s *shownInformer) subject() any { return s.i }

func (s *shownInformer) leave() {
	s.stop()
	s.m.informers.stored.DeleteLabelValues(s.name)
}

func (s *shownInformer) collect(to chan<- prometheus.Metric) {
	f, now := &s.m.informers, s.i.Status()
	f.send(to, now, s.name)
	r := now.Resource
	if version, ok := lastDigits(now.ResourceVersion); ok {
		f.version.send(to, version, s.name, r.Group, r.Version, r.Plural)
	}
	for name, missed := range missedByScope(now.Scopes) {
		f.missedInScope.send(to, float64(missed), s.name, name)
	}
	for _, h := range byName(now.Handlers) {
		f.pending.send(to, float64(h.Pending), s.name, h.Name)
		f.handlerPanic.send(to, float64(h.Panics), s.name, h.Name)
		f.handlerStuck.send(to, passed(h.StuckSince), s.name, h.Name)
	}
}

// lastDigits returns the last 15 digits of a version, as client-go does. A float64 cannot hold more digits exactly.
func lastDigits(version string) (float64, bool) {
	n, err := strconv.ParseUint(version[max(len(version)-15, 0):], 10, 64)
	return float64(n), err == nil
}

// maxHandlers is the number of an informer's handlers that have a series of their own.
const maxHandlers = 25

// otherHandlers is the label of all further handlers.
const otherHandlers = "others"

// maxScopes is the number of an informer's scopes that have a series of their own.
const maxScopes = 25

// otherScopes is the label of all further scopes.
const otherScopes = "others"

// missedByScope returns the missed changes of the scopes that have any. It adds up the scopes beyond maxScopes.
func missedByScope(all []informer.ScopeStatus) map[string]int {
	sums := map[string]int{}
	for _, s := range all {
		name := strings.ToValidUTF8(s.Name, "?")
		if len(sums) >= maxScopes {
			name = otherScopes
		}
		if s.Check.Missed > 0 {
			sums[name] += s.Check.Missed
		}
	}
	return sums
}

// byName adds up the handlers that have the same name, and the handlers beyond maxHandlers. Of their stuck calls, the
// one that began first counts.
func byName(all []informer.HandlerStatus) []informer.HandlerStatus {
	sums := map[string]informer.HandlerStatus{}
	for _, h := range all {
		h.Name = strings.ToValidUTF8(h.Name, "?")
		if _, known := sums[h.Name]; !known && len(sums) >= maxHandlers {
			h.Name = otherHandlers
		}
		sum := sums[h.Name]
		h.Pending, h.Panics = h.Pending+sum.Pending, h.Panics+sum.Panics
		if passed(sum.StuckSince) > passed(h.StuckSince) {
			h.StuckSince = sum.StuckSince
		}
		sums[h.Name] = h
	}
	return slices.Collect(maps.Values(sums))
}
