package pipe_test

import (
	"crypto/tls"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/internal/pipe"
)

// TestSendBuffersAreBounded checks a plain connection, one below TLS, and one in memory, which has no such buffer.
func TestSendBuffersAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, wrap := range []func(net.Conn) net.Conn{
		func(c net.Conn) net.Conn { return c },
		func(c net.Conn) net.Conn { return tls.Server(c, nil) },
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		pipe.BoundSendBuffer(wrap(c))
		raw, err := c.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		size := 0
		require.NoError(t, raw.Control(func(fd uintptr) {
			size, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
		}))
		require.NoError(t, err)
		require.Equal(t, 2*(208<<10), size)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	pipe.BoundSendBuffer(a)
}
