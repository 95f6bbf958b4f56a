package testserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

// TestConnectionsHaveBoundedSendBuffers looks at the server's side of a connection.
func TestConnectionsHaveBoundedSendBuffers(t *testing.T) {
	s := New(Options{})
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	resp := must.Get(http.Get("http://" + l.Addr().String() + "/readyz"))(t)
	must.Get(io.Copy(io.Discard, resp.Body))(t)
	require.NoError(t, resp.Body.Close())
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(t, s.conns, 1)
	for c := range s.conns {
		raw, err := c.(interface {
			SyscallConn() (syscall.RawConn, error)
		}).SyscallConn()
		require.NoError(t, err)
		size := 0
		require.NoError(t, raw.Control(func(fd uintptr) {
			size, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
		}))
		require.NoError(t, err)
		require.Equal(t, 2*(208<<10), size)
	}
}
