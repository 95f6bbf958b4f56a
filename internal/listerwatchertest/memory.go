package listerwatchertest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	"github.com/leatproject/leat/internal/pipe"
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Serve serves a handler in memory until the test ends, and returns a Dial that reaches it with any address. Use it for
// answers that no real server gives; otherwise use package testserver. Both ends work in a synctest bubble.
func Serve(t *testing.T, h http.Handler) Dial { return serve(t, h, nil) }

// ServeTLS is Serve over TLS, with HTTP/2.
func ServeTLS(t *testing.T, h http.Handler, c *tls.Config) Dial { return serve(t, h, c) }

func serve(t *testing.T, h http.Handler, c *tls.Config) Dial {
	t.Helper()
	l := pipe.Listen()
	server := &http.Server{Handler: h, TLSConfig: c, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c != nil {
			_ = server.ServeTLS(l, "", "") // ends with the test
			return
		}
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		_ = l.Close()
		<-done
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) }
}
