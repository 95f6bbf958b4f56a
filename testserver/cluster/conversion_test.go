package cluster_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver/cluster"
)

// TestConversionWebhooks converts through connections of the options. They end with the cluster.
func TestConversionWebhooks(t *testing.T) {
	var open atomic.Int32
	webhook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if json.NewDecoder(r.Body).Decode(&review) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID}
		review.Response.Result.Status = "Success"
		for _, o := range review.Request.Objects {
			var tree map[string]any
			_ = json.Unmarshal(o.Raw, &tree)
			tree["apiVersion"], tree["converted"] = review.Request.DesiredAPIVersion, true
			o.Raw, _ = json.Marshal(tree)
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, o)
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	ended := make(chan struct{}, 10)
	webhook.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
			ended <- struct{}{}
		}
	}
	webhook.Config.ErrorLog = log.New(io.Discard, "", 0) // the last part of the test fails handshakes
	webhook.StartTLS()
	defer webhook.Close()

	crd := wheels("v1", true)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				URL:      new("https://example.com/convert"), // httptest's certificate is for example.com
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
			},
		},
	}
	var dialled atomic.Value
	c, err := cluster.New(cluster.Options{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{crd},
		WebhookService: func(namespace, name string, _ int32) (string, error) {
			return name + "." + namespace + ".example:443", nil
		},
		WebhookDial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Store(address)
			return new(net.Dialer).DialContext(ctx, network, webhook.Listener.Addr().String())
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	in := func(version string) api.Resource {
		return api.Resource{Group: "leat.example", Version: version, Kind: "Wheel", Plural: "wheels", Namespaced: true}
	}
	must.Get(c.Server.Create(in("v1"), map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default"}}))(t)
	got := must.Get(c.Server.Get(in("v2"), api.Key{Namespace: "default", Name: "a"}))(t)
	require.Equal(t, true, got.Object["converted"])
	require.Equal(t, "example.com:443", dialled.Load())
	require.Positive(t, open.Load())

	by := crd.Spec.Conversion.Webhook.ClientConfig
	by.URL, by.Service = nil, &apiextensionsv1.ServiceReference{Namespace: "mills", Name: "converter"}
	must.Get(c.Server.Update(definitionResource, crd))(t)
	_, err = c.Server.Create(in("v2"), map[string]any{"metadata": map[string]any{"name": "b", "namespace": "default"}})
	require.ErrorContains(t, err, "tls: ", "the certificate is not for the service")
	require.Equal(t, "converter.mills.example:443", dialled.Load())
	cancel()
	require.NoError(t, <-done)
	for open.Load() > 0 {
		<-ended
	}
	require.Zero(t, open.Load())
}
