package pipe_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSendBuffersAreBounded(t *testing.T) {
	server, _ := joiningPair(t)
	raw, err := server.(interface {
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
