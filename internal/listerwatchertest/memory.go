package listerwatchertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
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
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
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
	return l.dial
}

// listener passes the server's ends of connections to Accept.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- newEager(server):
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// eager is a connection whose writes do not wait for the reader, like those of a socket. In a TLS handshake, both ends
// may write first.
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

// flush writes the queued bytes before Close, while the other end reads.
func (e *eager) flush() {
	for {
		select {
		case b := <-e.queue:
			_ = e.SetWriteDeadline(time.Now().Add(time.Second)) // a closed pipe returns an error from Write
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
