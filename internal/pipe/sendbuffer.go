package pipe

import "net"

// sendBuffer is the size in bytes of the send buffer that a connection asks for. Linux doubles it, for what it keeps
// beside the data.
const sendBuffer = 208 << 10

// boundSendBuffer gives a connection on loopback a send buffer of a fixed size. Linux lets it grow to 4 MB. The text of
// a large list then leaves the processor's cache before the client reads it, and the list takes a tenth more processor
// time. Other connections keep their buffers: what is under way to a distant client must fit into them.
func boundSendBuffer(c *net.TCPConn) {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		_ = c.SetWriteBuffer(sendBuffer) // on an error, lists take more time
	}
}
