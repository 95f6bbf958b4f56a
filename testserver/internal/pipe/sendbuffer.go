package pipe

import (
	"crypto/tls"
	"net"
)

// sendBuffer is the size in bytes of the send buffer that a connection asks for. Linux doubles it, for what it keeps
// beside the data.
const sendBuffer = 208 << 10

// BoundSendBuffer gives a TCP connection on loopback a send buffer of a fixed size. Linux lets it grow to 4 MB. The
// text of a large list then leaves the processor's cache before the client reads it, and the list takes a tenth more
// processor time. Other connections keep their buffers: what is under way to a distant client must fit into them.
func BoundSendBuffer(c net.Conn) {
	t, ok := belowTLS(c).(*net.TCPConn)
	if !ok {
		return
	}
	if a, ok := t.RemoteAddr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		_ = t.SetWriteBuffer(sendBuffer) // on an error, lists take more time
	}
}

// belowTLS returns the connection that carries a TLS connection, and others as they are.
func belowTLS(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}
