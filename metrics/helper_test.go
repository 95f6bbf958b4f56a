package metrics_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/testserver"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

var configMaps = fixture.ConfigMaps

type configMap = metav1.PartialObjectMetadata

// registered returns Metrics and its registry, which checks everything.
func registered(t testing.TB) (*metrics.Metrics, *prometheus.Registry) {
	registry := prometheus.NewPedanticRegistry()
	m := must.Get(metrics.New(registry))(t)
	return m, registry
}

// shown is anything that can be a member.
func shown(t testing.TB) func(*metrics.CollectorRegistration, error) *metrics.CollectorRegistration {
	return func(r *metrics.CollectorRegistration, err error) *metrics.CollectorRegistration {
		t.Helper()
		require.NoError(t, err)
		return r
	}
}

// exposition returns the answer to a scrape of a registry, as text.
func exposition(t *testing.T, registry prometheus.Gatherer) []byte {
	t.Helper()
	answer := httptest.NewRecorder()
	metrics.Handler(registry).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code)
	return answer.Body.Bytes()
}

// requireExposition compares a scrape with a file of testdata. With names, it looks only at these.
func requireExposition(t *testing.T, registry prometheus.Gatherer, path string, names ...string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(path, exposition(t, registry), 0o644))
	}
	expected := must.Get(os.Open(path))(t)
	defer expected.Close()
	require.NoError(t, testutil.GatherAndCompare(registry, expected, names...))
}

// values returns the series of a family by their labels, joined with commas. For a histogram, the value is the count.
func values(t *testing.T, registry prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families := must.Get(registry.Gather())(t)
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				if labels != "" {
					labels += ","
				}
				labels += l.GetValue()
			}
			found[labels] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found
}

// cluster is a server in memory, for a bubble.
type cluster struct {
	server *testserver.Server
	config apiclient.Config
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{server: testserver.New(testserver.Options{})}
	fixture.Start(t, c.server.Run)
	transport := c.server.Client().Transport
	t.Cleanup(transport.(interface{ CloseIdleConnections() }).CloseIdleConnections)
	c.config = apiclient.Config{Host: c.server.URL(), Transport: transport}
	return c
}

func (c *cluster) informer(t *testing.T, o informer.Options[*configMap]) *informer.Informer[*configMap] {
	client := must.Get(apiclient.New(c.config))(t)
	return informer.New(apiclient.NewPartial[*configMap](client, configMaps, ""), o)
}

func (c *cluster) create(t *testing.T, name string) {
	must.Get(c.server.Create(configMaps, &configMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}))(t)
}

// linger takes some time.
func linger(d time.Duration) { <-time.After(d) }
