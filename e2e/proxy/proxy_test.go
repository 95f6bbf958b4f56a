package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/e2e/proxy"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

// patience is how long a test waits for what must come, and short for what must not.
const (
	patience = 10 * time.Second
	short    = 50 * time.Millisecond
)

// echo starts a server that returns every line, a last line after the client's end, and then its own end.
func echo(t *testing.T) (address string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
				_, _ = io.WriteString(conn, "end\n")
			})
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		serving.Wait()
	})
	return l.Addr().String()
}

// start runs a proxy in front of the target until the test ends.
func start(t *testing.T, target string) *proxy.Proxy {
	t.Helper()
	p := must.Get(proxy.Listen(target))(t)
	fixture.Start(t, p.Run)
	return p
}

func dial(t *testing.T, p *proxy.Proxy) *net.TCPConn {
	t.Helper()
	conn := must.Get(net.Dial("tcp", p.Address()))(t)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn.(*net.TCPConn)
}

// exchange sends a line and reads it back.
func exchange(t *testing.T, conn net.Conn) {
	t.Helper()
	must.Get(io.WriteString(conn, "hello\n"))(t)
	line := must.Get(bufio.NewReader(conn).ReadString('\n'))(t)
	require.Equal(t, "hello\n", line)
}

func TestForwards(t *testing.T) {
	p := start(t, echo(t))
	conn := dial(t, p)
	sent := bytes.Repeat([]byte("0123456789abcde\n"), 100_000)
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.CloseWrite()
	}()
	got := must.Get(io.ReadAll(conn))(t)
	require.True(t, bytes.Equal(append(sent, "end\n"...), got), "%d bytes of %d", len(got), len(sent)+4)
	require.Equal(t, int64(1), p.Stats().Accepted)
	require.Zero(t, p.Stats().Held)
}

func TestCut(t *testing.T) {
	p := start(t, echo(t))
	first, second := dial(t, p), dial(t, p)
	exchange(t, first)
	exchange(t, second)
	require.Equal(t, 2, p.Cut())
	for _, conn := range []net.Conn{first, second} {
		require.ErrorIs(t, must.Err(conn.Read(make([]byte, 1))), syscall.ECONNRESET)
	}
	exchange(t, dial(t, p))
}

func TestStall(t *testing.T) {
	p := start(t, echo(t))
	old := dial(t, p)
	exchange(t, old)
	p.Stall()
	p.Stall() // a second call does nothing
	recent := dial(t, p)
	for _, conn := range []net.Conn{old, recent} {
		must.Get(io.WriteString(conn, "hello\n"))(t)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(short)))
		require.ErrorIs(t, must.Err(conn.Read(make([]byte, 1))), os.ErrDeadlineExceeded)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	}
	p.Resume()
	p.Resume()
	for _, conn := range []net.Conn{old, recent} {
		line := must.Get(bufio.NewReader(conn).ReadString('\n'))(t)
		require.Equal(t, "hello\n", line)
		exchange(t, conn)
	}
}

// TestHeld stalls a server that sends without requests.
func TestHeld(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	p := start(t, l.Addr().String())
	client := dial(t, p)
	server := must.Get(l.Accept())(t)
	defer server.Close()
	p.Stall()
	must.Get(io.WriteString(server, "held\n"))(t)
	require.Eventually(t, func() bool { return p.Stats().Held == 5 }, patience, time.Millisecond)
	p.Resume()
	line := must.Get(bufio.NewReader(client).ReadString('\n'))(t)
	require.Equal(t, "held\n", line)
	require.Eventually(t, func() bool { return p.Stats().Held == 0 }, patience, time.Millisecond)
}

func TestHalfClose(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	p := start(t, l.Addr().String())
	client := dial(t, p)
	server := must.Get(l.Accept())(t)
	defer server.Close()
	must.Get(io.WriteString(server, "x"))(t)
	must.Get(client.Read(make([]byte, 1)))(t)

	require.Equal(t, 1, p.HalfClose())
	require.ErrorIs(t, must.Err(client.Read(make([]byte, 1))), io.EOF)
	must.Get(io.WriteString(client, "still here\n"))(t)
	line := must.Get(bufio.NewReader(server).ReadString('\n'))(t)
	require.Equal(t, "still here\n", line)
}

func TestRefuse(t *testing.T) {
	p := start(t, echo(t))
	old := dial(t, p)
	exchange(t, old)
	p.Refuse(true)
	requireReset(t, p)
	exchange(t, old)
	p.Refuse(false)
	exchange(t, dial(t, p))
}

func TestServerIsGone(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, l.Close())
	requireReset(t, start(t, l.Addr().String()))
}

// requireReset connects and requires a reset, which may already fail the connect.
func requireReset(t *testing.T, p *proxy.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err == nil {
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = conn.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestRunEnds(t *testing.T) {
	for _, stalled := range []bool{false, true} {
		p := must.Get(proxy.Listen(echo(t)))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		conn := dial(t, p)
		exchange(t, conn)
		if stalled {
			p.Stall()
		}
		cancel()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(patience):
			require.Fail(t, "Run goes on", "stalled: %v", stalled)
		}
		require.Zero(t, p.Stats().Open)
		_, err := conn.Read(make([]byte, 1))
		require.True(t, errors.Is(err, syscall.ECONNRESET), "%v", err)
		require.ErrorIs(t, must.Err(net.Dial("tcp", p.Address())), syscall.ECONNREFUSED)
	}
}
