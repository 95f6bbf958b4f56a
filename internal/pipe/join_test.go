package pipe_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/pipe"
)

// joiningPair returns both ends of a connection on loopback, whose server end comes from Joining.
func joiningPair(t *testing.T) (server, client net.Conn) {
	plain := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := pipe.Joining(plain)
	client = must.Get(net.Dial("tcp", l.Addr().String()))(t)
	server = must.Get(l.Accept())(t)
	require.NoError(t, l.Close())
	t.Cleanup(func() {
		_ = server.Close() // a test may have closed it
		require.NoError(t, client.Close())
	})
	return server, client
}

// requestOf returns a request that came over a connection.
func requestOf(t *testing.T, c net.Conn, major int) *http.Request {
	r := must.Get(http.NewRequestWithContext(pipe.WithConn(t.Context(), c), http.MethodGet, "/", nil))(t)
	r.ProtoMajor = major
	return r
}

// TestJoinedWritesArriveInOrder writes texts of random sizes, some of them joined. The client reads all that was
// written before the next step, so nothing may stay behind.
func TestJoinedWritesArriveInOrder(t *testing.T) {
	server, client := joiningPair(t)
	random := rand.New(rand.NewPCG(1, 2))
	source := make([]byte, 32<<10)
	for i := range source {
		source[i] = byte(random.Uint32())
	}
	kept := 0
	for range 300 {
		var joiner *pipe.Joiner
		if random.IntN(3) > 0 {
			joiner = pipe.JoinerOf(nil, requestOf(t, server, 1))
			require.NotNil(t, joiner)
		}
		var want []byte
		joiner.Join()
		for range random.IntN(30) {
			text := source[random.IntN(8<<10):][:[]int{1, 6, 4 << 10, 4 << 10, 4<<10 + 1, 20 << 10}[random.IntN(6)]]
			n := must.Get(server.Write(text))(t)
			require.Len(t, text, n)
			kept = max(kept, joiner.Kept())
			want = append(want, text...)
		}
		require.NoError(t, joiner.Send())
		got := make([]byte, len(want))
		must.Get(io.ReadFull(client, got))(t)
		require.True(t, bytes.Equal(want, got))
	}
	require.Greater(t, kept, 8<<10, "small writes are joined")
	require.LessOrEqual(t, kept, 64<<10)
}

func TestJoinedWritesFail(t *testing.T) {
	server, _ := joiningPair(t)
	joiner := pipe.JoinerOf(nil, requestOf(t, server, 1))
	joiner.Join()
	_, err := server.Write([]byte("small"))
	require.NoError(t, err)
	require.NoError(t, server.Close())
	n, err := server.Write(make([]byte, 8<<10))
	require.ErrorIs(t, err, net.ErrClosed)
	require.Zero(t, n)
	_, err = server.Write([]byte("small"))
	require.NoError(t, err)
	require.ErrorIs(t, joiner.Send(), net.ErrClosed)
	require.NoError(t, joiner.Send(), "nothing is left")
}

// TestConnectionsThatCannotJoin includes HTTP/2, whose frames another goroutine writes.
func TestConnectionsThatCannotJoin(t *testing.T) {
	server, client := joiningPair(t)
	require.Nil(t, pipe.JoinerOf(nil, requestOf(t, server, 2)))
	require.Nil(t, pipe.JoinerOf(nil, requestOf(t, client, 1)))
	require.Nil(t, pipe.JoinerOf(wrapping{}, requestOf(t, server, 1)))
}

type wrapping struct{ http.ResponseWriter }

func (w wrapping) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestResetOfAJoiningConnection requires RST instead of an end.
func TestResetOfAJoiningConnection(t *testing.T) {
	server, client := joiningPair(t)
	pipe.Reset(server)
	_, err := client.Read(make([]byte, 1))
	require.ErrorContains(t, err, "reset")
}
