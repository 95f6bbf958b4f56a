package pipe_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver/internal/pipe"
)

// cheapPair returns both ends of a connection on loopback, whose server end comes from CheapLists.
func cheapPair(t *testing.T) (server, client net.Conn) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := pipe.CheapLists(plain)
	client, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	t.Cleanup(func() {
		_ = server.Close() // a test may have closed it
		require.NoError(t, client.Close())
	})
	return server, client
}

// requestOf returns a request that came over a connection.
func requestOf(t *testing.T, c net.Conn, major int) *http.Request {
	r, err := http.NewRequestWithContext(pipe.WithConn(t.Context(), c), http.MethodGet, "/", nil)
	require.NoError(t, err)
	r.ProtoMajor = major
	return r
}

// TestJoinedWritesArriveInOrder writes texts of random sizes, some of them joined. The client reads all that was
// written before the next step, so nothing may stay behind.
func TestJoinedWritesArriveInOrder(t *testing.T) {
	server, client := cheapPair(t)
	requests := []*http.Request{requestOf(t, server, 1), requestOf(t, server, 2)}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var texts [][]byte
		for range random.IntN(4) {
			text := make([]byte, []int{1, 6, 4 << 10, 4<<10 + 1, 60 << 10}[random.IntN(5)])
			for i := range text {
				text[i] = byte(random.Uint32())
			}
			texts = append(texts, text)
		}
		write := func() error {
			for _, text := range texts {
				n, err := server.Write(text)
				if err != nil {
					return err
				}
				if n != len(text) {
					return errors.New("a short write")
				}
			}
			return nil
		}
		if which := random.IntN(3); which < 2 {
			require.NoError(t, pipe.JoinWrites(nil, requests[which], write))
		} else {
			require.NoError(t, write())
		}
		want := bytes.Join(texts, nil)
		got := make([]byte, len(want))
		_, err := io.ReadFull(client, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
	}
}

// TestJoinedWritesFail closes the connection before the large write, and before the end.
func TestJoinedWritesFail(t *testing.T) {
	server, _ := cheapPair(t)
	r := requestOf(t, server, 1)
	require.ErrorIs(t, pipe.JoinWrites(nil, r, func() error {
		_, err := server.Write([]byte("small"))
		require.NoError(t, err)
		require.NoError(t, server.Close())
		n, err := server.Write(make([]byte, 8<<10))
		require.Zero(t, n)
		return err
	}), net.ErrClosed)
	require.ErrorIs(t, pipe.JoinWrites(nil, r, func() error {
		_, err := server.Write([]byte("small"))
		return err
	}), net.ErrClosed)
	own := errors.New("own")
	require.ErrorIs(t, pipe.JoinWrites(nil, requestOf(t, nil, 1), func() error { return own }), own)
}

// TestResetOfACheapConnection requires RST instead of an end.
func TestResetOfACheapConnection(t *testing.T) {
	server, client := cheapPair(t)
	pipe.Reset(server)
	_, err := client.Read(make([]byte, 1))
	require.ErrorContains(t, err, "reset")
}
