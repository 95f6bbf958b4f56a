package otel_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/adapter/otel"
	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/program"
	"github.com/leatproject/leat/testkit"
)

var _ interface {
	manager.Runnable
	manager.Named
} = (*otel.Telemetry)(nil)

var configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

// kept is an exporter that keeps its spans after the shutdown.
type kept struct {
	mu    sync.Mutex
	spans tracetest.SpanStubs
}

func (k *kept) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	return nil
}

func (k *kept) Shutdown(context.Context) error { return nil }

// named returns the spans of a name, in the order of their ends.
func (k *kept) named(name string) (found tracetest.SpanStubs) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func value(attributes []attribute.KeyValue, key string) string {
	for _, a := range attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// headers is a transport that records the traceparent headers of requests.
type headers struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []string
}

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.seen = append(h.seen, r.Method+" "+r.Header.Get("Traceparent"))
	h.mu.Unlock()
	return h.next.RoundTrip(r)
}

// TestSpans runs a controller whose first attempt fails, whose second one panics, and whose third one writes.
func TestSpans(t *testing.T) {
	testkit.Run(t, testkit.Options{}, func(k *testkit.Kit) {
		spans := &kept{}
		telemetry, err := otel.New(otel.Options{Name: "mill", Spans: spans, Attributes: []attribute.KeyValue{attribute.String("stage", "test")}})
		require.NoError(t, err)
		wire := &headers{next: k.Server.Client().Transport}
		p, err := program.New(program.Options{Name: "mill", Logger: k.Logger, Config: apiclient.Config{
			Host: k.Server.URL(), Transport: telemetry.Transport(wire), // over the network: WrapTransport
		}})
		require.NoError(t, err)
		maps := program.Typed(p, configMaps, informer.Options[*corev1.ConfigMap]{})
		attempts := 0
		program.Controller(p, "mill", otel.Reconciler(telemetry, "mill", controller.Func[api.Key](func(ctx context.Context, key api.Key) (controller.Result, error) {
			switch attempts++; attempts {
			case 1:
				return controller.Result{}, errors.New("no grain")
			case 2:
				panic("no wind")
			case 3:
				_, err := maps.Patch(ctx, key, apiclient.Patch{Type: "application/merge-patch+json", Data: []byte(`{"data":{"a":"b"}}`)}, apiclient.PatchOptions{})
				return controller.Result{RequeueAfter: time.Hour}, err
			}
			return controller.Result{}, nil
		})), controller.For(maps.Informer()))
		must.Get(p.Manager.AddWith(telemetry, manager.Placement{Group: manager.Servers}))(t)
		running := k.Start(p.Run)
		created := time.Now()
		testkit.Create(k, configMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "north"}})
		k.Pass(time.Minute)
		running.Stop()

		reconciles := spans.named("reconcile mill")
		require.GreaterOrEqual(t, len(reconciles), 3)
		first, second, third := reconciles[0], reconciles[1], reconciles[2]
		require.Equal(t, "default/north", value(first.Attributes, "leat.key"))
		require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "no grain"}, first.Status)
		require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "the reconciler panicked"}, second.Status)
		require.Equal(t, codes.Unset, third.Status.Code)
		require.Equal(t, "1h0m0s", value(third.Attributes, "leat.requeue.after"))
		require.Equal(t, "test", value(third.Resource.Attributes(), "stage"))

		events := spans.named("event configmaps")
		require.NotEmpty(t, events)
		require.Len(t, first.Links, 1)
		require.Equal(t, events[0].SpanContext.TraceID(), first.Links[0].SpanContext.TraceID())
		require.Equal(t, "add", value(first.Links[0].Attributes, "leat.event.type"))
		require.Equal(t, created.UTC().Format(time.RFC3339Nano), value(first.Links[0].Attributes, "leat.event.time"))
		require.Equal(t, created.UTC(), events[0].StartTime.UTC())
		last := second.Links[len(second.Links)-1]
		require.Equal(t, first.SpanContext.SpanID(), last.SpanContext.SpanID(), "the second attempt names the first")

		patches := spans.named("PATCH configmaps")
		require.Len(t, patches, 1)
		require.Equal(t, third.SpanContext.SpanID(), patches[0].Parent.SpanID())
		require.Equal(t, "200", value(patches[0].Attributes, "http.response.status_code"))
		require.NotEqual(t, "0", value(patches[0].Attributes, "http.response.body.size"))
		require.Contains(t, wire.seen, "PATCH 00-"+third.SpanContext.TraceID().String()+"-"+patches[0].SpanContext.SpanID().String()+"-01")
		watch := spans.named("GET configmaps")
		require.NotEmpty(t, watch)
		require.Less(t, watch[0].EndTime.Sub(watch[0].StartTime), time.Second, "the span of a watch does not last as long as the watch")
	})
}

// TestTargets checks the names of spans.
func TestTargets(t *testing.T) {
	spans := &kept{}
	telemetry, err := otel.New(otel.Options{Name: "mill", Spans: spans})
	require.NoError(t, err)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := http.Client{Transport: telemetry.Transport(http.DefaultTransport)}
	for _, path := range []string{
		"/api/v1/pods", "/k8s/cluster/api/v1/namespaces/default/pods/web/status", "/apis/apps/v1/namespaces/default/deployments",
		"/api/v1/namespaces/default", "/api/v1/namespaces/default/finalize", "/apis/apps/v1/deployments/x/scale", "/openapi/v3/apis/x", "/version", "/apis", "/",
	} {
		answer := must.Get(client.Get(server.URL + path + "?secret=1"))(t)
		require.NoError(t, answer.Body.Close())
	}
	server.Close()
	_, err = client.Get(server.URL + "/api/v1/pods")
	require.Error(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, telemetry.Run(ctx))
	var names []string
	for _, s := range spans.spans {
		names = append(names, s.Name)
		for _, a := range s.Attributes {
			require.NotContains(t, a.Value.String(), "secret")
		}
		require.Equal(t, codes.Error, s.Status.Code)
	}
	require.Equal(t, []string{
		"GET pods", "GET pods/status", "GET deployments.apps", "GET namespaces", "GET namespaces/finalize", "GET deployments.apps/scale",
		"GET /openapi/v3", "GET /version", "GET /apis", "GET /", "GET pods",
	}, names)
}

// TestOTLP sends spans and metrics to a collector.
func TestOTLP(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] += string(body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	address := strings.TrimPrefix(collector.URL, "http://")
	spans := must.Get(otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure()))(t)
	values := must.Get(otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpoint(address), otlpmetrichttp.WithInsecure()))(t)
	registry := prometheus.NewRegistry()
	ground := prometheus.NewCounter(prometheus.CounterOpts{Name: "ground_total", Help: "Sacks."})
	registry.MustRegister(ground)
	ground.Add(7)
	telemetry := must.Get(otel.New(otel.Options{Name: "mill", Spans: spans, Metrics: values, Registry: registry}))(t)
	r := otel.Reconciler(telemetry, "mill", controller.Func[string](func(context.Context, string) (controller.Result, error) {
		return controller.Result{}, nil
	}))
	must.Get(r.Reconcile(t.Context(), "north"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, telemetry.Run(ctx))
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, got["/v1/traces"], "reconcile mill")
	require.Contains(t, got["/v1/metrics"], "ground_total")
}

// broken is an exporter that fails.
type broken struct{ kept }

func (*broken) Shutdown(context.Context) error { return errors.New("no collector") }

func TestRunReportsWhatItCouldNotWrite(t *testing.T) {
	telemetry := must.Get(otel.New(otel.Options{Name: "mill", Spans: &broken{}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, telemetry.Run(ctx), "otel: write the last spans and metrics: no collector")
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := otel.New(otel.Options{Registry: prometheus.NewRegistry(), Flush: -1})
	require.ErrorContains(t, err, "otel: Options.Name is empty")
	require.ErrorContains(t, err, "otel: Options need both Metrics and Registry, or neither")
	require.ErrorContains(t, err, "otel: Options.Interval and Options.Flush must not be negative")
	require.Panics(t, func() { otel.Reconciler[string](nil, "mill", nil) })
}
