package apiclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
)

const secret = "s3cr3t-t0ken"

var (
	podResource  = api.Resource{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true}
	nodeResource = api.Resource{Version: "v1", Kind: "Node", Plural: "nodes"}
	deployments  = api.Resource{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
)

// memory is a network of one server in memory, so that a client and a server fit into a synctest bubble.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemory() *memory {
	return &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (m *memory) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- newEager(server):
		return client, nil
	case <-m.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// eager is a connection whose writes do not wait for the reader, as those to a socket do not: in a TLS handshake both
// ends may write first.
type eager struct {
	net.Conn
	queue chan []byte
	done  chan struct{}
	once  sync.Once
}

func newEager(c net.Conn) *eager {
	e := &eager{Conn: c, queue: make(chan []byte, 1024), done: make(chan struct{})}
	go func() {
		defer c.Close()
		for {
			select {
			case b := <-e.queue:
				if _, err := c.Write(b); err != nil {
					return
				}
			case <-e.done:
				e.flush()
				return
			}
		}
	}()
	return e
}

// flush writes what was queued before Close, as long as somebody reads it.
func (e *eager) flush() {
	for {
		select {
		case b := <-e.queue:
			_ = e.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := e.Conn.Write(b); err != nil {
				return
			}
		default:
			return
		}
	}
}

func (e *eager) Write(p []byte) (int, error) {
	select {
	case <-e.done:
		return 0, net.ErrClosed
	case e.queue <- bytes.Clone(p):
		return len(p), nil
	}
}

func (e *eager) Close() error {
	e.once.Do(func() { close(e.done) })
	return nil
}

// inMemory serves a handler in memory, and returns the configuration to reach it. It ends with the test.
func inMemory(t *testing.T, h http.HandlerFunc) apiclient.Config {
	t.Helper()
	network := newMemory()
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(network)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		_ = network.Close()
		<-done
	})
	return apiclient.Config{Host: "http://server.memory", DialContext: network.DialContext}
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
	client, err := apiclient.New(c)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func pods(t *testing.T, c apiclient.Config) *apiclient.Resource[*corev1.Pod] {
	t.Helper()
	return apiclient.For[*corev1.Pod](newClient(t, c), podResource, "")
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
