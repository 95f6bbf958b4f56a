package pipe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
)

func TestPipeCarriesBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := newConn()
		sent := bytes.Repeat([]byte("0123456789abcdefg"), 100_000) // many times the buffer, but not a multiple of it
		go func() {
			must.Get(client.Write(sent))(t)
			require.NoError(t, client.CloseWrite())
		}()
		got := must.Get(io.ReadAll(server))(t)
		require.True(t, bytes.Equal(sent, got))

		// After CloseWrite, the other direction still works.
		must.Get(server.Write([]byte("answer")))(t)
		require.NoError(t, server.Close())
		got = must.Get(io.ReadAll(client))(t)
		require.Equal(t, "answer", string(got))
	})
}

func TestPipeBlocksWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := newConn()
		n := must.Get(client.Write(make([]byte, bufferSize)))(t)
		require.Equal(t, bufferSize, n)
		written := false
		go func() {
			must.Get(client.Write([]byte{1}))(t)
			written = true
		}()
		synctest.Wait()
		require.False(t, written, "a write into a full buffer must block")
		must.Get(io.ReadFull(server, make([]byte, 10)))(t)
		synctest.Wait()
		require.True(t, written)
	})
}

func TestPipeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := newConn()
		started := time.Now()
		require.NoError(t, client.SetDeadline(started.Add(time.Second)))
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var timeout net.Error
		require.True(t, errors.As(err, &timeout) && timeout.Timeout())
		require.Equal(t, time.Second, time.Since(started))

		_, err = client.Write(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		// A moved deadline wakes the waiting side; a cleared deadline lets it continue.
		require.NoError(t, client.SetDeadline(time.Time{}))
		go func() {
			<-time.After(time.Minute)
			require.NoError(t, client.SetReadDeadline(time.Unix(1, 0)))
		}()
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Second)))
		require.NoError(t, client.SetReadDeadline(time.Time{}))
		<-time.After(2 * time.Second)
		_, err = server.Write([]byte("x"))
		require.NoError(t, err)
		_, err = client.Read(make([]byte, 1))
		require.NoError(t, err, "a cleared deadline must not fire")

		require.NoError(t, server.SetWriteDeadline(time.Now().Add(time.Second)))
		_, err = server.Write(make([]byte, 2*bufferSize))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}

func TestPipeEnds(t *testing.T) {
	one := make([]byte, 1)
	for name, row := range map[string]struct {
		end         func(client, server *conn)
		read, write error // of the client
	}{
		"peer closed":      {func(_, s *conn) { s.Close() }, io.EOF, syscall.ECONNRESET},
		"peer half-closed": {func(_, s *conn) { _ = s.CloseWrite() }, io.EOF, nil},
		"peer reset":       {func(_, s *conn) { s.Reset() }, syscall.ECONNRESET, syscall.ECONNRESET},
		"closed":           {func(c, _ *conn) { c.Close() }, net.ErrClosed, net.ErrClosed},
		"half-closed":      {func(c, s *conn) { _ = c.CloseWrite(); _, _ = s.Write(one) }, nil, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := newConn()
				go func() {
					<-time.After(time.Second)
					row.end(client, server)
				}()
				_, err := client.Read(one)
				require.ErrorIs(t, err, row.read)
				<-time.After(time.Second)
				_, err = client.Write(one)
				require.ErrorIs(t, err, row.write)
			})
		})
	}
}

func TestResetKeepsBufferedBytes(t *testing.T) {
	client, server := newConn()
	_, err := server.Write([]byte("early"))
	require.NoError(t, err)
	server.Reset()
	got, err := io.ReadAll(client)
	require.Equal(t, "early", string(got))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestPipeListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.Dial(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "no Accept is running")
		accepted := make(chan net.Conn)
		go func() {
			c := must.Get(l.Accept())(t)
			accepted <- c
		}()
		client, err := l.Dial(t.Context())
		require.NoError(t, err)
		server := <-accepted
		require.Equal(t, client.RemoteAddr(), server.LocalAddr())
		require.Equal(t, "pipe", l.Addr().Network())
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = l.Dial(t.Context())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}
