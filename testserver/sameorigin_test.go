package testserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// browser returns the headers that a browser sends and a script cannot change.
func browser(more ...string) http.Header {
	h := http.Header{
		"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"},
		"Accept":     {"*/*"}, "Accept-Encoding": {"gzip, deflate"}, "Accept-Language": {"en-US,en;q=0.9"},
	}
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

// loopbackServer is a server on loopback with its address.
type loopbackServer struct {
	*testing.T
	*testserver.Server
	address string
}

func onLoopback(t *testing.T, o testserver.Options) *loopbackServer {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &loopbackServer{T: t, Server: testserver.New(o), address: l.Addr().String()}
	fixture.Start(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
	return s
}

// send sends a request with the given headers. host is the Host header if it is not empty.
func (s *loopbackServer) send(method, path, host string, h http.Header, body string) (int, string) {
	s.Helper()
	r := must.Get(http.NewRequest(method, "http://"+s.address+path, strings.NewReader(body)))(s)
	r.Host, r.Header = host, h
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response := must.Get(client.Do(r))(s)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(s)
	return response.StatusCode, string(text)
}

// TestServeRefusesWebPages sends the requests of a web page that tries to read, to write and to watch.
func TestServeRefusesWebPages(t *testing.T) {
	s := onLoopback(t, testserver.Options{})
	const secret = `{"metadata":{"name":"a"},"data":{"k":"secret"}}`
	code, _ := s.send("POST", mapsPath, "", nil, secret)
	require.Equal(t, 201, code)
	before := s.Snapshot()
	_, port, err := net.SplitHostPort(s.address)
	require.NoError(t, err)
	const evil = "https://evil.example"
	rebound := "evil.example:" + port
	for _, row := range []struct {
		name, method, path, host string
		header                   http.Header
		body                     string
		code                     int
	}{
		{"read", "GET", mapsPath, "", browser("Origin", evil), "", 403},
		{"read without CORS", "GET", mapsPath, "", browser("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), "", 403},
		{"read from another local server", "GET", mapsPath, "", browser("Sec-Fetch-Site", "same-site"), "", 403},
		{"watch", "GET", mapsPath + "?watch=1", "", browser("Origin", evil), "", 403},
		{"form", "POST", mapsPath, "", browser("Origin", evil, "Content-Type", "text/plain"), secret, 403},
		{"body without a type", "POST", mapsPath, "", browser("Origin", evil), secret, 403},
		{"the same, old browser", "POST", mapsPath, "", browser(), secret, 415},
		{"form, old browser", "POST", mapsPath, "", browser("Content-Type", "application/x-www-form-urlencoded"), secret, 415},
		{"preflight", "OPTIONS", mapsPath + "/a", "", browser("Origin", evil, "Access-Control-Request-Method", "DELETE"), "", 403},
		{"delete", "DELETE", mapsPath + "/a", "", browser("Origin", evil), "", 403},
		{"rebound, read", "GET", mapsPath, rebound, browser(), "", 403},
		{"rebound, watch", "GET", mapsPath + "?watch=1", rebound, browser(), "", 403},
		{"rebound, write", "POST", mapsPath, rebound, browser("Origin", "http://"+rebound, "Content-Type", "application/json"), secret, 403},
		{"rebound, delete", "DELETE", mapsPath + "/a", rebound, browser("Origin", "http://"+rebound), "", 403},
		{"rebound, version", "GET", "/version", rebound, browser(), "", 403},
	} {
		code, text := s.send(row.method, row.path, row.host, row.header, row.body)
		require.Equal(t, row.code, code, row.name)
		require.NotContains(t, text, "secret", row.name)
	}
	require.Equal(t, before, s.Snapshot())
	require.Len(t, s.Requests(), 1, "no other request has reached the API")
}

// TestServeRefusesWebSocketsOfPages opens WebSockets with the Origin headers of web pages, and with the server's own
// origin.
func TestServeRefusesWebSocketsOfPages(t *testing.T) {
	s := onLoopback(t, testserver.Options{AllowedHosts: []string{"leat.example"}})
	for origin, code := range map[string]int{
		"https://evil.example": 403, "http://localhost:3000": 403, "null": 403, "http://" + s.address + ".evil.example": 403,
		"http://" + s.address: 101, "https://leat.example": 101,
	} {
		conn, res, err := new(websocket.Dialer).DialContext(t.Context(), "ws://"+s.address+podsPath+"?watch=1", browser("Origin", origin))
		require.Equal(t, code, res.StatusCode, origin)
		require.Equal(t, code == 101, err == nil, origin)
		if err == nil {
			require.NoError(t, conn.Close())
		}
	}
}

// TestServeAnswersPrograms sends the requests of curl, of kubectl, and of clients behind a tunnel.
func TestServeAnswersPrograms(t *testing.T) {
	s := onLoopback(t, testserver.Options{AllowedHosts: []string{"localhost:9000"}})
	for name, header := range map[string]http.Header{
		"curl":    {"Content-Type": {"application/json"}, "User-Agent": {"curl/8.5.0"}},
		"no-type": {"User-Agent": {"kubectl/v1.37.2"}}, // kubectl create --raw
	} {
		code, text := s.send("POST", mapsPath, "", header, `{"metadata":{"name":"`+name+`"}}`)
		require.Equal(t, 201, code, text)
	}
	// kube-apiserver reads no media type of forms, whatever the client is.
	for _, kind := range []string{"text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"} {
		code, text := s.send("POST", mapsPath, "", http.Header{"Content-Type": {kind}}, "{}")
		require.Equal(t, 415, code)
		require.Contains(t, text, "UnsupportedMediaType")
	}
	for _, host := range []string{"", "localhost:9000"} {
		code, text := s.send("GET", mapsPath, host, browser("Sec-Fetch-Site", "none"), "")
		require.Equal(t, 200, code)
		require.Contains(t, text, `"no-type"`)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	err = testserver.New(testserver.Options{AllowedHosts: []string{"a b"}}).Serve(t.Context(), l)
	require.ErrorContains(t, err, "testserver: serve: sameorigin: allowed host")
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestInMemoryRefusesNothing sends the requests to Run that Serve refuses.
func TestInMemoryRefusesNothing(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		r := b.request(http.MethodPost, mapsPath, doc{"metadata": doc{"name": "a"}})
		r.Header = browser("Origin", "https://evil.example")
		r.Host = "evil.example"
		res := must.Get(b.client.Do(r))(b)
		require.NoError(b, res.Body.Close())
		require.Equal(b, 201, res.StatusCode)
	})
}

// memoryListener is a listener in memory, but not the one of the server.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *memoryListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

// TestSlowClientsAreCut has clients that send one byte of their headers each second, or nothing after an answer. Serve
// must disconnect them, Run must not.
func TestSlowClientsAreCut(t *testing.T) {
	const whole = "GET /version HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"
	for _, row := range []struct {
		name string
		send func(net.Conn) error
		took time.Duration
	}{
		{"slow headers", func(c net.Conn) error {
			for i := range len(whole) {
				<-time.After(time.Second)
				if _, err := io.WriteString(c, whole[i:i+1]); err != nil {
					return err
				}
			}
			return errors.New("all of it was read")
		}, 32 * time.Second},
		{"idle", func(c net.Conn) error {
			_, err := io.WriteString(c, whole)
			return err
		}, 90 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, l := testserver.New(testserver.Options{}), &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 2)
				go func() { done <- srv.Serve(ctx, l) }()
				go func() { done <- srv.Run(ctx) }()
				ours, theirs := net.Pipe()
				l.conns <- theirs
				inMemory, err := srv.Dial(ctx)
				require.NoError(t, err)
				began, sent := time.Now(), make(chan error, 2)
				for _, conn := range []net.Conn{ours, inMemory} {
					go func() { sent <- row.send(conn) }()
				}
				go func() { _, _ = io.Copy(io.Discard, inMemory) }()
				_, _ = io.Copy(io.Discard, ours)
				require.Equal(t, row.took, time.Since(began))
				<-time.After(time.Hour)
				_, err = io.WriteString(inMemory, whole)
				require.NoError(t, err, "the connection in memory is still open")
				cancel()
				require.NoError(t, errors.Join(<-done, <-done))
				<-sent
				<-sent
			})
		})
	}
}
