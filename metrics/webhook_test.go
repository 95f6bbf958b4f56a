package metrics_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/webhook"
)

var _ webhook.Observer = (*metrics.Metrics)(nil)

func TestWebhooks(t *testing.T) {
	m, registry := registered(t)
	require.Empty(t, string(exposition(t, registry)), "a program without webhooks has no series about them")
	m.WebhookAdded("/validate")
	require.Contains(t, string(exposition(t, registry)), "\ncontroller_runtime_webhook_panics_total 0\n", "series begin at zero")
	for range 2 {
		m.WebhookStarted("/validate")
	}
	m.WebhookEnded("/validate", 200, 20*time.Millisecond)
	m.WebhookPanicked(false)
	m.WebhookPanicked(true)
	m.CertificateRead(nil)
	m.CertificateRead(errors.New("half a file"))
	require.Equal(t, map[string]float64{"/validate": 1}, values(t, registry, "controller_runtime_webhook_requests_in_flight"))
	require.Equal(t, map[string]float64{"200,/validate": 1, "500,/validate": 0}, values(t, registry, "controller_runtime_webhook_requests_total"))
	require.Equal(t, map[string]float64{"/validate": 1}, values(t, registry, "controller_runtime_webhook_latency_seconds"))
	require.Equal(t, map[string]float64{"": 1}, values(t, registry, "controller_runtime_webhook_panics_total"))
	require.Equal(t, map[string]float64{"": 1}, values(t, registry, "controller_runtime_conversion_webhook_panics_total"))
	require.Equal(t, map[string]float64{"": 2}, values(t, registry, "certwatcher_read_certificate_total"))
	require.Equal(t, map[string]float64{"": 1}, values(t, registry, "certwatcher_read_certificate_errors_total"))
}
