package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/metrics"
)

// TestMetrics checks the metrics of a rollout.
func TestMetrics(t *testing.T) {
	inProgram(t, func(w *world) {
		w.deploy(asIs)
		w.Pass(time.Minute)
		scrape := httptest.NewRecorder()
		metrics.Handler(w.registry).ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		require.Equal(w, http.StatusOK, scrape.Code)
		text := scrape.Body.String()
		for _, series := range []string{
			`controller_runtime_max_concurrent_reconciles{controller="deployment"} 3`,
			`controller_runtime_reconcile_errors_total{controller="replicaset"} 0`,
			`leat_event_latency_seconds_bucket{controller="deployment",stage="done",le="0.0001"} `,
			`leat_informer_objects{informer="deployments.apps"} 1`,
			`leat_informer_objects{informer="pods"} 4`,
			`leat_informer_objects{informer="replicasets.apps"} 1`,
			`leat_recorder_events_total{recorder="replicaset-controller"} 4`,
			`workqueue_depth{controller="kubelet",name="kubelet",priority="0"} 0`,
			`go_goroutines `,
		} {
			require.Contains(w, text, "\n"+series)
		}
		require.NotContains(w, text, "leader_election_master_status", "nobody contends")
	})
}
