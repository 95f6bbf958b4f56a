package metrics

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leatproject/leat/apiclient"
)

// requestFamilies have the names of client-go's families.
type requestFamilies struct {
	requests, retries                *prometheus.CounterVec
	duration, limited, sent, answers *prometheus.HistogramVec
}

func newRequestFamilies(c *catalog) requestFamilies {
	seconds := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}
	bytes := []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
	return requestFamilies{
		requests: c.counts("rest_client_requests_total", "Requests, including those that were sent again.", "code", "method", "host"),
		retries:  c.counts("rest_client_request_retries_total", "Requests that were sent again.", "code", "verb", "host"),
		duration: c.histogram("rest_client_request_duration_seconds", "Time until the end of the answer, without watches.", seconds, "verb", "host"),
		limited:  c.histogram("rest_client_rate_limiter_duration_seconds", "Time that requests waited for the client's own rate limiter.", seconds, "verb", "host"),
		sent:     c.histogram("rest_client_request_size_bytes", "Size of the request bodies, without watches.", bytes, "verb", "host"),
		answers:  c.histogram("rest_client_response_size_bytes", "Size of the response bodies on the wire, without watches.", bytes, "verb", "host"),
	}
}

// noAnswer is the code of a request without an answer, as in client-go.
const noAnswer = "<error>"

// OnRequest observes a request. Use it for apiclient.Config.OnRequest, for any number of clients. The labels verb and
// method are both the HTTP method. A watch is counted when it ends; its time and size are not observed. OnRequest
// corresponds to the functions that client-go registers in tools/metrics.
func (m *Metrics) OnRequest(r apiclient.Request) {
	f, host, code := &m.requests, strings.ToValidUTF8(r.Host, "?"), noAnswer
	if r.Code != 0 {
		code = strconv.Itoa(r.Code)
	}
	f.requests.WithLabelValues(code, r.Method, host).Inc()
	if r.Attempt > 1 {
		f.retries.WithLabelValues(code, r.Method, host).Inc()
	}
	if r.Limited > 0 {
		f.limited.WithLabelValues(r.Method, host).Observe(r.Limited.Seconds())
	}
	if r.Verb == "watch" {
		return
	}
	f.duration.WithLabelValues(r.Method, host).Observe(r.Total.Seconds())
	f.sent.WithLabelValues(r.Method, host).Observe(float64(r.Sent))
	f.answers.WithLabelValues(r.Method, host).Observe(float64(r.Received))
}
