package metrics

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// webhookFamilies have the names of controller-runtime's families.
type webhookFamilies struct {
	requests, panics, conversionPanics, reads, failedReads *prometheus.CounterVec
	inFlight                                               *prometheus.GaugeVec
	duration                                               *prometheus.HistogramVec
}

func newWebhookFamilies(c *catalog) webhookFamilies {
	return webhookFamilies{
		requests: c.counts("controller_runtime_webhook_requests_total", "Requests to a webhook, by the HTTP code of the answer.", "webhook", "code"),
		inFlight: c.gauges("controller_runtime_webhook_requests_in_flight", "Requests that a webhook is handling.", "webhook"),
		duration: c.histogram("controller_runtime_webhook_latency_seconds", "Time that a webhook took for a request.",
			prometheus.ExponentialBuckets(10e-9, 10, 12), "webhook"),
		panics:           c.counts("controller_runtime_webhook_panics_total", "Requests whose defaulter or validator panicked."),
		conversionPanics: c.counts("controller_runtime_conversion_webhook_panics_total", "Requests whose conversion panicked."),
		reads:            c.counts("certwatcher_read_certificate_total", "Reads of the files of a serving certificate."),
		failedReads:      c.counts("certwatcher_read_certificate_errors_total", "Reads of these files that found no valid certificate."),
	}
}

// WebhookAdded makes the series of a webhook begin at zero. It and the next four methods implement Observer of package
// webhook: use Metrics for webhook.Options.Observer. This package does not link webhook.
func (m *Metrics) WebhookAdded(path string) {
	f, path := &m.webhooks, strings.ToValidUTF8(path, "?")
	for _, code := range []string{"200", "500"} {
		f.requests.WithLabelValues(path, code)
	}
	f.inFlight.WithLabelValues(path)
	f.duration.WithLabelValues(path)
	for _, v := range []*prometheus.CounterVec{f.panics, f.conversionPanics, f.reads, f.failedReads} {
		v.WithLabelValues()
	}
}

// WebhookStarted counts a request to a webhook.
func (m *Metrics) WebhookStarted(path string) {
	m.webhooks.inFlight.WithLabelValues(strings.ToValidUTF8(path, "?")).Inc()
}

// WebhookEnded observes a request to a webhook.
func (m *Metrics) WebhookEnded(path string, code int, took time.Duration) {
	f, path := &m.webhooks, strings.ToValidUTF8(path, "?")
	f.inFlight.WithLabelValues(path).Dec()
	f.requests.WithLabelValues(path, strconv.Itoa(code)).Inc()
	f.duration.WithLabelValues(path).Observe(took.Seconds())
}

// WebhookPanicked counts a panic in an admission or a conversion webhook.
func (m *Metrics) WebhookPanicked(conversion bool) {
	if conversion {
		m.webhooks.conversionPanics.WithLabelValues().Inc()
		return
	}
	m.webhooks.panics.WithLabelValues().Inc()
}

// CertificateRead counts a read of the files of a serving certificate.
func (m *Metrics) CertificateRead(err error) {
	m.webhooks.reads.WithLabelValues().Inc()
	if err != nil {
		m.webhooks.failedReads.WithLabelValues().Inc()
	}
}
