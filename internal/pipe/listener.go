package pipe

import (
	"context"
	"net"
	"sync"
)

// Listener passes the server ends of new connections to Accept.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen returns a new listener. Only Dial reaches it.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener. It fails after Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, opError("accept", net.ErrClosed)
	}
}

// Close implements net.Listener. It does not close accepted connections.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return addr{} }

// Dial blocks until the connection is accepted, the listener is closed, or ctx ends.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := newConn()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, ErrRefused
	case <-ctx.Done():
		return nil, opError("dial", ctx.Err())
	}
}
