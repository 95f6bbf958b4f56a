package pipe

import (
	"io"
	"net"
	"syscall"
	"time"
)

// Host is the name of the server that connections in memory lead to. No network has it.
const Host = "testserver"

// ErrRefused is the error of a client if no server listens.
var ErrRefused = opError("dial", syscall.ECONNREFUSED)

// addr is the address of both ends of every connection in memory.
type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return Host }

// conn is one end of a connection in memory.
type conn struct{ in, out *stream }

// newConn returns the two ends of a connection.
func newConn() (client, server *conn) {
	up, down := newStream(), newStream()
	return &conn{in: down, out: up}, &conn{in: up, out: down}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, opError("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, opError("write", err)
}

// Close ends both directions. The peer reads the buffered bytes and then EOF.
func (c *conn) Close() error {
	c.out.update(func(s *stream) { s.writerDone, s.writerClosed = true, true })
	c.in.update(func(s *stream) { s.readerClosed = true })
	return nil
}

// CloseWrite ends one direction, as with a TCP connection. The peer may still write.
func (c *conn) CloseWrite() error {
	c.out.update(func(s *stream) { s.writerDone = true })
	return nil
}

// Reset ends the connection as a TCP RST does. As on Linux, buffered bytes can still be read; so what a client sees
// does not depend on scheduling. It ends the outgoing stream first, because otherwise the peer could read what this
// side's server writes after it noticed the reset.
func (c *conn) Reset() {
	for _, s := range []*stream{c.out, c.in} {
		s.update(func(s *stream) { s.reset = true })
	}
}

func (c *conn) LocalAddr() net.Addr  { return addr{} }
func (c *conn) RemoteAddr() net.Addr { return addr{} }

func (c *conn) SetDeadline(at time.Time) error {
	c.in.setDeadline(&c.in.readLimit, at)
	c.out.setDeadline(&c.out.writeLimit, at)
	return nil
}

func (c *conn) SetReadDeadline(at time.Time) error {
	c.in.setDeadline(&c.in.readLimit, at)
	return nil
}

func (c *conn) SetWriteDeadline(at time.Time) error {
	c.out.setDeadline(&c.out.writeLimit, at)
	return nil
}

// opError wraps an error as package net does, so that callers recognize resets and timeouts. It does not wrap io.EOF.
func opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "pipe", Addr: addr{}, Err: err}
}
