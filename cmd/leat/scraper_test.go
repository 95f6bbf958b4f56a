package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var metricsURL = regexp.MustCompile(`metrics on (http://\S+)\n`)

// scrape returns the metrics at the address in an output.
func scrape(t *testing.T, named *output) string {
	t.Helper()
	named.await(t, "/metrics\n")
	answer, err := http.Get(metricsURL.FindStringSubmatch(named.String())[1])
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "\ngo_goroutines ")
	return string(body)
}

// inBackground runs a command until the test ends.
func inBackground(t *testing.T, args ...string) (out, errs *output) {
	ctx, cancel := context.WithCancel(t.Context())
	out, errs = newOutput(), newOutput()
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, out, errs) }()
	t.Cleanup(func() {
		cancel()
		require.Zero(t, <-ended, errs)
	})
	return out, errs
}

func TestDemoShowsMetrics(t *testing.T) {
	out, _ := inBackground(t, "demo", "--keep-running", "--metrics", "127.0.0.1:0")
	out.await(t, "still running")
	text := scrape(t, out)
	for _, series := range []string{
		`controller_runtime_max_concurrent_reconciles{controller="replicas"} 2`,
		`leat_event_latency_seconds_count{controller="replicas",stage="done"} `,
		`leat_informer_objects{informer="pods"} 0`,
		`leat_informer_synced{informer="replicasets.apps"} 1`,
		`rest_client_requests_total{code="201",host="testserver",method="POST"} `,
	} {
		require.Contains(t, text, "\n"+series)
	}
}

func TestWatchShowsMetrics(t *testing.T) {
	path := serving(t)
	create(t, path, "one")
	out, errs := inBackground(t, "watch", "configmaps", "--kubeconfig", path, "--metrics", "127.0.0.1:0")
	out.await(t, "SYNCED")
	text := scrape(t, errs)
	require.Contains(t, text, "\nleat_informer_objects{informer=\"configmaps\"} 1\n")
	require.Contains(t, text, "\nrest_client_requests_total{code=\"200\"")
}

func TestServeShowsMetrics(t *testing.T) {
	out, _ := inBackground(t, "serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", "", "--metrics", "127.0.0.1:0")
	require.Contains(t, scrape(t, out), "\nleat_server_watches 0\n")
}

// A command that cannot serve its metrics does not start.
func TestMetricsNeedAnAddress(t *testing.T) {
	for _, command := range [][]string{
		{"demo"}, {"watch", "pods"}, {"serve", "--listen", "127.0.0.1:0", "--kubeconfig-out", ""},
	} {
		out, errs := newOutput(), newOutput()
		require.Equal(t, 1, run(t.Context(), append(command, "--metrics", "nowhere"), out, errs))
		require.Contains(t, errs.String(), "leat: --metrics: ")
		require.Empty(t, out.String())
	}
}
