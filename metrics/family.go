package metrics

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// catalog lists everything that Metrics may show.
type catalog struct {
	descriptions []*prometheus.Desc
	vectors      []prometheus.Collector
}

// family is all series of one name whose values are read at a scrape.
type family struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
}

func (c *catalog) gauge(name, help string, labels ...string) family {
	return c.family(prometheus.GaugeValue, name, help, labels)
}

func (c *catalog) counter(name, help string, labels ...string) family {
	return c.family(prometheus.CounterValue, name, help, labels)
}

func (c *catalog) family(kind prometheus.ValueType, name, help string, labels []string) family {
	f := family{prometheus.NewDesc(name, help, labels, nil), kind}
	c.descriptions = append(c.descriptions, f.description)
	return f
}

// send sends one series. The labels must be valid UTF-8.
func (f family) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(f.description, f.kind, value, labels...)
}

// table contains the families of a kind of members, and how their values are read from S, the state of a member.
type table[S any] struct {
	c      *catalog
	labels []string // they have the name of the member as their value
	rows   []row[S]
}

type row[S any] struct {
	family
	value func(S) float64 // NaN if there is no series at present
	more  []string        // values of further labels
}

func newTable[S any](c *catalog, labels ...string) *table[S] { return &table[S]{c: c, labels: labels} }

func (t *table[S]) gauge(name, help string, value func(S) float64) {
	t.add(t.c.gauge(name, help, t.labels...), value)
}

func (t *table[S]) counter(name, help string, value func(S) float64) {
	t.add(t.c.counter(name, help, t.labels...), value)
}

// counterOf is counter for a family with one more label. It returns a function that adds the series of a label's value.
func (t *table[S]) counterOf(label, name, help string) (add func(of string, value func(S) float64)) {
	f := t.c.counter(name, help, append(slices.Clone(t.labels), label)...)
	return func(of string, value func(S) float64) { t.add(f, value, of) }
}

func (t *table[S]) add(f family, value func(S) float64, more ...string) {
	t.rows = append(t.rows, row[S]{f, value, more})
}

// send sends the series of the member with a name.
func (t *table[S]) send(to chan<- prometheus.Metric, state S, name string) {
	labels := slices.Repeat([]string{name}, len(t.labels))
	for _, r := range t.rows {
		if value := r.value(state); !math.IsNaN(value) {
			r.family.send(to, value, append(labels, r.more...)...)
		}
	}
}

// one is 1 for true and 0 for false.
func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// named is a member whose series are all in a table.
type named[S any] struct {
	of    any
	name  string
	table *table[S]
	state func() S // is called at every scrape
}

func (n *named[S]) collect(to chan<- prometheus.Metric) { n.table.send(to, n.state(), n.name) }

func (n *named[S]) subject() any { return n.of }

func (n *named[S]) leave() {}

// counts returns a family that is counted in this package, because the source has no counter.
func (c *catalog) counts(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	c.vectors = append(c.vectors, v)
	return v
}

// gauges returns a family of values that rise and fall in this package.
func (c *catalog) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	c.vectors = append(c.vectors, v)
	return v
}

// histogram returns a distribution with the given buckets. For scrapers that support native buckets, it has those too,
// with the settings of controller-runtime.
func (c *catalog) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
	c.vectors = append(c.vectors, v)
	return v
}

// latencyBuckets returns buckets from a tenth of a millisecond, when everything is fast, to minutes, when something is
// wrong.
func latencyBuckets() []float64 {
	return []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
}

// observeSince observes the time between two times. It ignores a negative time, because then the later moment did not
// result from the earlier one.
func observeSince(o prometheus.Observer, from, to time.Time) {
	if d := to.Sub(from); d >= 0 && !from.IsZero() {
		o.Observe(d.Seconds())
	}
}
