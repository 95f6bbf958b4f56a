package metrics

import (
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

// sendBool sends 1 for true and 0 for false.
func (f family) sendBool(to chan<- prometheus.Metric, yes bool, labels ...string) {
	value := 0.0
	if yes {
		value = 1
	}
	f.send(to, value, labels...)
}

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
