package websocket_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	ws "github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/internal/fixture/must"
)

// onLoopback serves a handler on a real socket.
func onLoopback(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// forwarder is a proxy of bytes that can stop forwarding without closing anything, like a dead path.
type forwarder struct {
	address string

	mu   sync.Mutex // held while bytes are not forwarded
	done sync.WaitGroup
}

func newForwarder(t *testing.T, to string) *forwarder {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	f := &forwarder{address: l.Addr().String()}
	var conns []net.Conn
	f.done.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			conns = append(conns, in, out)
			f.done.Go(func() { f.pass(in, out) })
			f.done.Go(func() { f.pass(out, in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		for _, c := range conns {
			_ = c.Close()
		}
		f.done.Wait()
	})
	return f
}

func (f *forwarder) pass(to, from net.Conn) {
	buffer := make([]byte, 4<<10)
	for {
		n, err := from.Read(buffer)
		f.mu.Lock()
		_, failed := to.Write(buffer[:n])
		f.mu.Unlock()
		if err != nil || failed != nil {
			_ = to.Close()
			return
		}
	}
}

// TestHalfOpenConnection watches over a path that dies silently, with short durations instead of 30 and 15 seconds.
func TestHalfOpenConnection(t *testing.T) {
	var pings sync.WaitGroup
	pings.Add(2)
	u := must.Get(url.Parse(onLoopback(t, upgraded(func(c *ws.Conn) {
		answer, left := c.PingHandler(), 2
		c.SetPingHandler(func(data string) error {
			if left--; left >= 0 {
				defer pings.Done()
			}
			return answer(data)
		})
		_ = c.WriteMessage(ws.TextMessage, event("6"))
		_, _, _ = c.NextReader()
	}))))(t)
	f := newForwarder(t, u.Host)
	client := newClient(t, apiclient.Config{Host: "http://" + f.address})
	// The answer may take long, so that a busy machine does not look like a dead path.
	lw := websocket.WatchWithKeepAlive(apiclient.NewTyped[*corev1.Pod](client, podResource, ""), 10*time.Millisecond, time.Second)
	versions := 0
	var last error
	for _, err := range lw.Watch(t.Context(), api.Options[*corev1.Pod]{}) {
		if last = err; err != nil {
			break
		}
		versions++
		go func() {
			pings.Wait() // only answers to pings keep it alive
			f.mu.Lock()
		}()
	}
	f.mu.Unlock()
	require.Equal(t, 1, versions)
	requireTimeout(t, last)
}

func TestResets(t *testing.T) {
	reset := func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	for name, h := range map[string]http.HandlerFunc{
		"in place of an answer": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				reset(c)
			}
		},
		"between messages": upgraded(func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			c.SetPingHandler(func(string) error { return errors.New("enough") }) // a ping proves that the event was read
			_, _, _ = c.NextReader()
			reset(c.NetConn())
		}),
		"inside a message": upgraded(func(c *ws.Conn) {
			_, _ = c.NetConn().Write(frame(true, ws.TextMessage, string(event("6")))[:50])
			c.SetPingHandler(func(string) error { return errors.New("enough") })
			_, _, _ = c.NextReader()
			reset(c.NetConn())
		}),
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, apiclient.Config{Host: onLoopback(t, h)})
			lw := websocket.WatchWithKeepAlive(apiclient.NewTyped[*corev1.Pod](client, podResource, ""), 10*time.Millisecond, time.Minute)
			require.ErrorIs(t, must.Err(collect(lw, t.Context())), syscall.ECONNRESET)
		})
	}
}
