package proxy

import (
	"net"
	"sync"
	"sync/atomic"
)

// connection is a client's connection and its connection to the server.
type connection struct {
	client, server *net.TCPConn
	cutting        sync.Once
	cut            chan struct{} // closed by reset
}

// reset closes both ends. Each peer reads "connection reset by peer", and bytes on the way are lost.
func (c *connection) reset() {
	c.cutting.Do(func() {
		close(c.cut)
		reset(c.client)
		reset(c.server)
	})
}

func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // a close then sends RST
	_ = conn.Close()
}

// pump forwards both directions until both have ended.
func (c *connection) pump(gate func() <-chan struct{}, held *atomic.Int64) {
	var both sync.WaitGroup
	both.Go(func() { c.copy(c.server, c.client, gate, new(atomic.Int64)) })
	both.Go(func() { c.copy(c.client, c.server, gate, held) })
	both.Wait()
}

// copy forwards one direction and its end while the gate is open. held counts the bytes that it has read and not yet
// written.
func (c *connection) copy(to, from *net.TCPConn, gate func() <-chan struct{}, held *atomic.Int64) {
	buffer := make([]byte, 32<<10)
	for {
		n, failed := from.Read(buffer)
		held.Add(int64(n))
		select {
		case <-gate():
		case <-c.cut:
			held.Add(int64(-n))
			return
		}
		_, err := to.Write(buffer[:n])
		held.Add(int64(-n))
		if failed != nil || err != nil {
			_ = to.CloseWrite()  // passes the end on
			_ = from.CloseRead() // stop the sender, because its bytes are no longer read
			return
		}
	}
}
