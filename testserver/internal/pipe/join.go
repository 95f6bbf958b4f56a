package pipe

import (
	"net"
	"net/http"
)

// CheapLists returns a listener whose TCP connections send large lists with less processor time: they can join writes,
// and their send buffers on loopback are bounded.
func CheapLists(l net.Listener) net.Listener { return joiningListener{l} }

type joiningListener struct{ net.Listener }

// Accept waits for the next connection.
func (l joiningListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if t, ok := c.(*net.TCPConn); ok && err == nil {
		boundSendBuffer(t)
		return &joiningConn{TCPConn: t}, nil
	}
	return c, err
}

// smallWrite is the size in bytes of the buffer in which net/http collects an answer.
const smallWrite = 4 << 10

// joiningConn can keep small writes until the next large one. Reason: net/http writes a large chunk in two parts, which
// are 4 KB and the rest. Each part wakes the client, and five lists of 12 MB take a fifth more processor time.
type joiningConn struct {
	*net.TCPConn
	joins bool
	kept  []byte
}

// Write writes p, or keeps it if it is small and JoinWrites runs.
func (c *joiningConn) Write(p []byte) (int, error) {
	if c.joins && len(p) <= smallWrite {
		c.kept = append(c.kept, p...)
		return len(p), nil
	}
	if len(c.kept) == 0 {
		return c.TCPConn.Write(p)
	}
	kept := len(c.kept)
	both := net.Buffers{c.kept, p}
	c.kept = c.kept[:0]
	n, err := both.WriteTo(c.TCPConn)
	return max(int(n)-kept, 0), err
}

// JoinWrites calls write, which writes a large part of the answer to a request. What net/http sends in a small write is
// sent with the next large one, and at the end at the latest. If w wraps another writer, nothing is kept: it may be a
// fault that sends some bytes and then waits. Only the goroutine of the request may call JoinWrites.
func JoinWrites(w http.ResponseWriter, r *http.Request, write func() error) error {
	c, ok := ConnOf(r).(*joiningConn)
	_, wraps := w.(interface{ Unwrap() http.ResponseWriter })
	if !ok || wraps || r.ProtoMajor > 1 {
		return write()
	}
	c.joins = true
	err := write()
	c.joins = false
	if len(c.kept) > 0 && err == nil {
		_, err = c.TCPConn.Write(c.kept)
	}
	c.kept = c.kept[:0]
	return err
}
