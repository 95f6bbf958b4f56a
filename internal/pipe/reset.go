package pipe

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// resetter is a connection that can be reset.
type resetter interface{ Reset() }

// Reset resets a connection. A TLS connection is reset below TLS, and a real connection is closed without linger, which
// sends RST.
func Reset(c net.Conn) {
	c = belowTLS(c)
	if r, ok := c.(resetter); ok {
		r.Reset()
		return
	}
	if t, ok := c.(interface{ SetLinger(seconds int) error }); ok {
		_ = t.SetLinger(0) // on an error, the client sees a plain close
	}
	_ = c.Close() // as above
}

// belowTLS returns the connection that carries a TLS connection, and others as they are.
func belowTLS(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// WithConn returns the context of a connection, from which ConnOf knows the connection. It is the ConnContext of
// an http.Server.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf returns the connection of a request, or nil if the server does not use WithConn.
func ConnOf(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	return c
}

// ResetRequest resets the connection of a request, or its stream in HTTP/2. It does not return.
func ResetRequest(r *http.Request) {
	if c := ConnOf(r); c != nil && r.ProtoMajor < 2 {
		Reset(c)
	}
	panic(http.ErrAbortHandler)
}
