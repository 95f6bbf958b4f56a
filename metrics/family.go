package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// catalog is everything that Metrics may show.
type catalog struct {
	descriptions []*prometheus.Desc
	vectors      []prometheus.Collector
}

// family is all series of one name whose values are asked for at a scrape.
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

// send sends one series. The labels must be valid text.
func (f family) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(f.description, f.kind, value, labels...)
}

// sendBool sends 1 for yes and 0 for no.
func (f family) sendBool(to chan<- prometheus.Metric, yes bool, labels ...string) {
	value := 0.0
	if yes {
		value = 1
	}
	f.send(to, value, labels...)
}

// counts is a family that is counted here, because nobody else does.
func (c *catalog) counts(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	c.vectors = append(c.vectors, v)
	return v
}

// histogram is a distribution, in the buckets given and, for scrapers that understand them, in native ones, with the
// settings that controller-runtime has.
func (c *catalog) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
	c.vectors = append(c.vectors, v)
	return v
}

// latencyBuckets are for what takes less than a millisecond when all is well, and minutes when it is not.
func latencyBuckets() []float64 {
	return []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
}

// observeSince observes what lies between two times. A negative time is that of an order of things which has nothing to
// tell: the later one did not come of the earlier one.
func observeSince(o prometheus.Observer, from, to time.Time) {
	if d := to.Sub(from); d >= 0 && !from.IsZero() {
		o.Observe(d.Seconds())
	}
}
