package websocket_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	ws "github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/testserver"
)

const secret = "s3cr3t-t0ken"

var podResource = listerwatchertest.Pods

func newClient(t *testing.T, c apiclient.Config) *apiclient.Client {
	t.Helper()
	client := must.Get(apiclient.New(c))(t)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func over[T api.Object](t *testing.T, s *testserver.Server) api.ListerWatcher[T] {
	return websocket.Watch(apiclient.NewPartial[T](newClient(t, apiclient.Config{
		Host:        s.URL(),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
		TLS:         apiclient.TLS{CAData: s.CA()},
	}), podResource, ""))
}

// TestSuite is the conformance suite that watches over HTTP pass.
func TestSuite(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{}, over[*corev1.Pod])
	})
	t.Run("TLS", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{Server: testserver.Options{TLS: true}}, over[*corev1.Pod])
	})
	t.Run("HTTP2 for the rest", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{Server: testserver.Options{HTTP2: true}, SkipUndecodable: true}, over[*metav1.PartialObjectMetadata])
	})
	t.Run("the server's own transport", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{}, func(t *testing.T, s *testserver.Server) api.ListerWatcher[*corev1.Pod] {
			client := newClient(t, apiclient.Config{Host: s.URL(), Transport: s.Client().Transport})
			return websocket.Watch(apiclient.NewTyped[*corev1.Pod](client, podResource, ""))
		})
	})
}

// subject returns a watch of a handler.
func subject(t *testing.T, change func(*apiclient.Config), h http.HandlerFunc) *websocket.ListerWatcher[*corev1.Pod] {
	t.Helper()
	cfg := apiclient.Config{Host: "http://server.memory/base", DialContext: listerwatchertest.Serve(t, h)}
	if change != nil {
		change(&cfg)
	}
	return websocket.Watch(apiclient.NewTyped[*corev1.Pod](newClient(t, cfg), podResource, "default"))
}

// upgraded switches protocols, calls do with the connection and closes it.
func upgraded(do func(c *ws.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		up := ws.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		do(c)
	}
}

// goodbye closes regularly.
func goodbye(c *ws.Conn) {
	_, _ = c.NetConn().Write(frame(true, ws.CloseMessage, "\x03\xe8")) // without the library's deadline
	_, _, _ = c.NextReader()                                           // until the client has closed
}

func event(version string) []byte {
	return fmt.Appendf(nil, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web","uid":"u","resourceVersion":%q}}}`, version)
}

func collect(lw *websocket.ListerWatcher[*corev1.Pod], ctx context.Context) (versions []string, last error) {
	for e, err := range lw.Watch(ctx, api.Options[*corev1.Pod]{ListOptions: metav1.ListOptions{ResourceVersion: "5"}}) {
		if err != nil {
			last = err
			continue
		}
		versions = append(versions, e.ResourceVersion)
	}
	return versions, last
}
