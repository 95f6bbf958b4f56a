package metrics_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver/faults"
)

// TestRequests compares the counters with the requests that a server received.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := registered(t)
		c := newCluster(t)
		c.config.OnRequest = m.OnRequest
		c.create(t, "a")
		c.server.Inject(faults.Fault{
			Match: faults.Match{Verbs: []string{"get"}}, Times: 1, Effect: faults.Fail{Code: http.StatusTooManyRequests, RetryAfter: 2 * time.Second},
		})
		maps := c.informer(t, informer.Options[*configMap]{Tuning: reflector.Tuning{NoWatchList: true}})
		stop := fixture.Start(t, maps.Run)
		client := must.Get(apiclient.New(c.config))(t)
		view := apiclient.NewPartial[*configMap](client, configMaps, "default")
		must.Get(view.Get(t.Context(), api.Key{Namespace: "default", Name: "a"}, metav1.GetOptions{}))(t)
		require.Error(t, must.Err(view.Get(t.Context(), api.Key{Namespace: "default", Name: "nobody"}, metav1.GetOptions{})))
		fixture.Pass(time.Minute)
		count := map[string]float64{"200,testserver,GET": 2, "404,testserver,GET": 1, "429,testserver,GET": 1}
		require.Equal(t, count, values(t, registry, "rest_client_requests_total"), "a list, a get, and two failed requests")
		stop()
		count["200,testserver,GET"] = 3
		require.Equal(t, count, values(t, registry, "rest_client_requests_total"), "and a watch, which has ended")
		require.Equal(t, map[string]float64{"200,testserver,GET": 1}, values(t, registry, "rest_client_request_retries_total"))
		for _, name := range []string{"rest_client_request_duration_seconds", "rest_client_request_size_bytes", "rest_client_response_size_bytes"} {
			require.Equal(t, map[string]float64{"testserver,GET": 4}, values(t, registry, name), "%s: all but the watch", name)
		}
		require.Contains(t, string(exposition(t, registry)), `rest_client_request_duration_seconds_bucket{host="testserver",verb="GET",le="0.005"} 4`)
	})
}

func TestRequestsWithoutAnAnswer(t *testing.T) {
	m, registry := registered(t)
	m.OnRequest(apiclient.Request{Verb: "get", Method: "GET", Host: "\xff", Err: errors.New("no"), Total: time.Second})
	require.Equal(t, map[string]float64{"<error>,?,GET": 1}, values(t, registry, "rest_client_requests_total"))
	require.Empty(t, values(t, registry, "rest_client_request_retries_total"))
	require.Empty(t, values(t, registry, "rest_client_rate_limiter_duration_seconds"), "there was no limiter")
}

// TestFormats requests OpenMetrics, as Prometheus does, and plain text.
func TestFormats(t *testing.T) {
	_, registry := registered(t)
	for accept, is := range map[string]string{"application/openmetrics-text": "application/openmetrics-text", "": "text/plain"} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		metrics.Handler(registry).ServeHTTP(answer, r)
		require.Equal(t, http.StatusOK, answer.Code)
		require.Contains(t, answer.Header().Get("Content-Type"), is)
	}
}
