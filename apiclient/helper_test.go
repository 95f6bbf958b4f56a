package apiclient_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
)

const secret = "s3cr3t-t0ken"

var (
	podResource  = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	nodeResource = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
	deployments  = api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
)

// inMemory serves a handler in memory, so that client and server fit into a synctest bubble. It returns the
// configuration of a client.
func inMemory(t *testing.T, h http.HandlerFunc) apiclient.Config {
	t.Helper()
	return apiclient.Config{Host: "http://server.memory", DialContext: listerwatchertest.Serve(t, h)}
}

// onLoopback serves a handler on a real socket.
func onLoopback(t *testing.T, h http.HandlerFunc) apiclient.Config {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return apiclient.Config{Host: server.URL}
}

func newClient(t *testing.T, c apiclient.Config) *apiclient.Client {
	t.Helper()
	client := must.Get(apiclient.New(c))(t)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func pods(t *testing.T, c apiclient.Config) *apiclient.TypedClient[*corev1.Pod] {
	t.Helper()
	return apiclient.NewTyped[*corev1.Pod](newClient(t, c), podResource, "")
}

// answer writes one answer.
func answer(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func keep[T any](into *[]T) func(T) error {
	return func(v T) error {
		*into = append(*into, v)
		return nil
	}
}

func isError(err, target error) bool { return errors.Is(err, target) }

func asError(err error, target any) bool { return errors.As(err, target) }

func isErrno(err error, n syscall.Errno) bool { return errors.Is(err, n) }

func isUnexpectedEOF(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// transportOf returns the newest transport, as an Opener gets it.
func transportOf(t *testing.T, c *apiclient.Client) (newest http.RoundTripper) {
	open := func(_ *http.Request, o apiclient.Opening) (io.ReadCloser, string, error) {
		newest = o.Transport
		return nil, "", io.ErrUnexpectedEOF
	}
	for _, err := range apiclient.NewPartial[*pod](c, podResource, "").WatchOver(t.Context(), api.Options[*pod]{}, open) {
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	return newest
}
