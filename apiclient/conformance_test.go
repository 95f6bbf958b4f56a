package apiclient_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/testserver"
)

// to returns the configuration of a client of a test server, with leat's own transport or the server's.
func to(s *testserver.Server) apiclient.Config {
	return apiclient.Config{
		Host:        s.URL(),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
		TLS:         apiclient.TLS{CAData: s.CA()},
	}
}

func viewOf[T api.Object](change func(*apiclient.Config)) listerwatchertest.Make[T] {
	return func(t *testing.T, s *testserver.Server) api.ListerWatcher[T] {
		cfg := to(s)
		if change != nil {
			change(&cfg)
		}
		return apiclient.NewPartial[T](newClient(t, cfg), listerwatchertest.Pods, "")
	}
}

// TestSuite is the conformance suite with every way to list and watch.
func TestSuite(t *testing.T) {
	t.Run("typed", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{}, viewOf[*corev1.Pod](nil))
	})
	t.Run("projected", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{}, viewOf[*pod](nil))
	})
	t.Run("metadata", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{SkipUndecodable: true}, viewOf[*metav1.PartialObjectMetadata](nil))
	})
	t.Run("unstructured", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{SkipUndecodable: true}, viewOf[*unstructured.Unstructured](nil))
	})
	t.Run("JSON only", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{}, viewOf[*corev1.Pod](func(c *apiclient.Config) { c.DisableProtobuf = true }))
	})
	t.Run("compressed", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{Server: testserver.Options{Compress: true, CompressWatches: true}}, viewOf[*corev1.Pod](nil))
	})
	t.Run("TLS", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{Server: testserver.Options{TLS: true}}, viewOf[*pod](nil))
	})
	t.Run("HTTP2", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{Server: testserver.Options{HTTP2: true}}, viewOf[*pod](nil))
	})
	t.Run("protobuf", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{SkipUndecodable: true},
			func(t *testing.T, s *testserver.Server) api.ListerWatcher[*corev1.Pod] {
				client := newClient(t, apiclient.Config{Host: s.URL(), Transport: listerwatchertest.Protobuf(s.Client().Transport)})
				return apiclient.NewTyped[*corev1.Pod](client, listerwatchertest.Pods, "")
			})
	})
}

func TestTheSuiteSeesMetadataOnly(t *testing.T) {
	asked := ""
	cfg := onLoopback(t, recorderOf(&asked))
	r := apiclient.NewPartial[*metav1.PartialObjectMetadata](newClient(t, cfg), podResource, "")
	must.Get(r.List(t.Context(), api.Options[*metav1.PartialObjectMetadata]{}, func(*metav1.PartialObjectMetadata) error { return nil }))(t)
	require.Contains(t, asked, "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	require.Error(t, must.Err(r.Get(t.Context(), web, metav1.GetOptions{})), "a list is not an object")
	require.Contains(t, asked, "as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
}
