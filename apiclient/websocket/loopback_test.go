package websocket_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	ws "github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
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

// tunnels is a proxy for HTTP CONNECT.
type tunnels struct {
	authorization string // the required value
	asked         chan string
}

func (p *tunnels) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked <- r.Method + " " + r.Host
	if r.Header.Get("Proxy-Authorization") != p.authorization {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	out, err := net.Dial("tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = out.Close()
		return
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
	join(in, out)
}

// join forwards bytes in both directions until one side closes.
func join(a, b net.Conn) {
	var done sync.WaitGroup
	done.Go(func() { _, _ = io.Copy(a, b); _ = a.Close() })
	done.Go(func() { _, _ = io.Copy(b, a); _ = b.Close() })
	done.Wait()
}

// socks is a SOCKS5 proxy (RFC 1928) with a user name and a password (RFC 1929).
func socks(t *testing.T, user, password string, asked chan<- string) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				defer c.Close()
				if out := negotiate(c, user, password, asked); out != nil {
					join(c, out)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		done.Wait()
	})
	return l.Addr().String()
}

func negotiate(c net.Conn, user, password string, asked chan<- string) net.Conn {
	r := bufio.NewReader(c)
	counted := func() string { // a byte with the length, then the bytes
		n, _ := r.ReadByte()
		b := make([]byte, n)
		_, _ = io.ReadFull(r, b)
		return string(b)
	}
	_, _ = r.ReadByte() // the version
	_ = counted()       // the methods
	_, _ = c.Write([]byte{5, 2})
	_, _ = r.ReadByte() // the version
	if u, p := counted(), counted(); u != user || p != password {
		_, _ = c.Write([]byte{1, 1})
		return nil
	}
	_, _ = c.Write([]byte{1, 0})
	head := make([]byte, 4)
	_, _ = io.ReadFull(r, head)
	var host string
	if head[3] == 1 {
		ip := make(net.IP, 4)
		_, _ = io.ReadFull(r, ip)
		host = ip.String()
	} else {
		host = counted()
	}
	port := make([]byte, 2)
	_, _ = io.ReadFull(r, port)
	address := net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port))))
	asked <- "SOCKS " + address
	out, err := net.Dial("tcp", address)
	if err != nil {
		return nil
	}
	_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	return out
}

// TestProxies watches a server with TLS through each kind of proxy.
func TestProxies(t *testing.T) {
	s := testserver.New(testserver.Options{TLS: true})
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	address := l.Addr().String()

	const basic = "Basic am9lOnMzY3IzdC10MGtlbg==" // joe:s3cr3t-t0ken
	asked := make(chan string, 10)
	plain := httptest.NewServer(&tunnels{authorization: basic, asked: asked})
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(&tunnels{authorization: basic, asked: asked})
	t.Cleanup(secure.Close)
	ca := append(s.CA(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})...)
	socksAddress := socks(t, "joe", secret, asked)
	first := func(t *testing.T, proxy string) error {
		u := must.Get(url.Parse(proxy))(t)
		client := newClient(t, apiclient.Config{Host: "https://" + address, ProxyURL: u, TLS: apiclient.TLS{CAData: ca}})
		lw := websocket.Watch(apiclient.NewPartial[*metav1.PartialObjectMetadata](client, api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}, ""))
		for e, err := range lw.Watch(t.Context(), api.Options[*metav1.PartialObjectMetadata]{}) {
			if err == nil {
				require.NotEmpty(t, e.Object.GetName())
			}
			return err
		}
		return errors.New("nothing came")
	}
	for name, c := range map[string]struct{ proxy, asked string }{
		"HTTP":  {"http://joe:" + secret + "@" + plain.Listener.Addr().String(), "CONNECT " + address},
		"HTTPS": {"https://joe:" + secret + "@" + secure.Listener.Addr().String(), "CONNECT " + address},
		"SOCKS": {"socks5://joe:" + secret + "@" + socksAddress, "SOCKS " + address},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, first(t, c.proxy))
			require.Equal(t, c.asked, <-asked)
		})
	}
	t.Run("a proxy that refuses", func(t *testing.T) {
		err := first(t, "http://joe:"+secret+"x@"+plain.Listener.Addr().String())
		require.ErrorContains(t, err, "Proxy Authentication Required")
		require.NotContains(t, err.Error(), secret)
		require.NotEmpty(t, <-asked)
	})
	t.Run("a proxy without a route", func(t *testing.T) {
		address = "127.0.0.1:1"
		require.ErrorContains(t, first(t, "http://joe:"+secret+"@"+plain.Listener.Addr().String()), "Bad Gateway")
	})
}
