package manager_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
)

// pipe is a listener in memory. While a goroutine reads from a socket, the fake time of a bubble does not advance.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipe() *pipe { return &pipe{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipe) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, errors.New("refused")
	}
}

// get sends a request over a new connection.
func (p *pipe) get(path string) (int, string, error) {
	client := http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}
	response, err := client.Get("http://admin" + path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// hesitate sends the head of a request, and never its body, so the server does not notice by itself that the connection
// is closed. hesitate returns when the connection is closed.
func (p *pipe) hesitate(ctx context.Context) error {
	conn, err := p.dial(ctx, "", "")
	if err != nil {
		return err
	}
	if _, err = io.WriteString(conn, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"); err != nil {
		return err
	}
	_, err = http.ReadResponse(bufio.NewReader(conn), nil)
	return err
}

// TestAdminServesToTheEnd sends requests while caches sync, while workers run, while they end, and afterwards.
func TestAdminServesToTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		l := newPipe()
		m := newManager(t, manager.Options{Admin: manager.AdminOptions{Listener: l, Address: "ignored"}})
		cache, worker := j.newSlow("cache"), j.newPart("worker")
		worker.linger = 10 * time.Second
		place(t, m, manager.Caches, cache)
		require.NoError(t, m.Add(worker))
		b := run(t, m)
		expect := func(path string, want int) {
			t.Helper()
			code, _, err := l.get(path)
			require.NoError(t, err)
			require.Equal(t, want, code, path)
		}
		expect("/healthz", 200)
		expect("/livez", 200)
		expect("/readyz", 500)
		close(cache.synced)
		synctest.Wait()
		expect("/readyz", 200)
		expect("/readyz/informer-sync", 200)
		b.cancel()
		synctest.Wait()
		expect("/readyz", 500)
		expect("/healthz", 200)
		require.NoError(t, <-b.ended)
		_, _, err := l.get("/healthz")
		require.ErrorContains(t, err, "refused")
	})
}

// TestRequestsInFlight ends a server during a request: one that ends soon, one that ends with its context, and one that
// does not end.
func TestRequestsInFlight(t *testing.T) {
	for _, c := range []struct {
		name            string
		handler         http.HandlerFunc
		shutdownTimeout time.Duration
		took            time.Duration
		answered        bool
	}{
		{"soon", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(4 * time.Second):
			case <-r.Context().Done():
				panic(http.ErrAbortHandler)
			}
		}, 0, 4 * time.Second, true},
		{"with its context", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0, 5 * time.Second, false},
		{"with its context, at once", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, -1, 0, false},
		{"late", func(http.ResponseWriter, *http.Request) { <-time.After(20 * time.Second) }, 10 * time.Second, 20 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipe()
				m := newManager(t, manager.Options{Admin: manager.AdminOptions{
					Listener: l, Metrics: c.handler, ShutdownTimeout: c.shutdownTimeout,
				}})
				b := run(t, m)
				asked := make(chan error, 1)
				go func() {
					if !c.answered {
						asked <- l.hesitate(t.Context())
						return
					}
					_, _, err := l.get("/metrics")
					asked <- err
				}()
				synctest.Wait()
				took := must.Get(b.stop())(t)
				require.InDelta(t, c.took, took, float64(time.Second)) // Shutdown polls its connections
				err := <-asked
				require.Equal(t, c.answered, err == nil, "%v", err)
			})
		})
	}
}

// TestRequestsHaveLimits has clients that do not read, and clients that write too much.
func TestRequestsHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipe()
		failed := make(chan time.Time, 1)
		server, err := manager.NewServer("wordy", manager.ServerOptions{Listener: l, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write(make([]byte, 1<<20))
			if err != nil {
				failed <- time.Now()
			}
		})})
		require.NoError(t, err)
		m := newManager(t, manager.Options{})
		require.NoError(t, m.Add(server))
		run(t, m)
		began := time.Now()
		deaf := must.Get(l.dial(t.Context(), "", ""))(t)
		must.Get(io.WriteString(deaf, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
		require.Equal(t, time.Minute, (<-failed).Sub(began))
		long := must.Get(l.dial(t.Context(), "", ""))(t)
		go func() {
			_, _ = io.WriteString(long, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 80<<10)+"\r\n\r\n")
		}()
		answer := must.Get(http.ReadResponse(bufio.NewReader(long), nil))(t)
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
		_ = long.Close()
	})
}

// TestConnectionsThatSayNothing expects that connections without a request are closed.
func TestConnectionsThatSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipe()
		m := newManager(t, manager.Options{Admin: manager.AdminOptions{Listener: l}})
		b := run(t, m)
		for said, want := range map[string]time.Duration{
			"GET / HTTP/1.1\r\n": 10 * time.Second,
			"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n": 30 * time.Second,
			"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                       90 * time.Second,
		} {
			conn := must.Get(l.dial(t.Context(), "", ""))(t)
			began := time.Now()
			go func() { _, _ = io.WriteString(conn, said) }()
			_, _ = io.ReadAll(conn)
			require.Equal(t, want, time.Since(began), said)
		}
		must.Get(b.stop())(t)
	})
}

// brokenListener fails to accept.
type brokenListener struct{ *pipe }

func (brokenListener) Accept() (net.Conn, error) { return nil, errors.New("too many files") }

func TestServersThatFail(t *testing.T) {
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	for says, o := range map[string]manager.AdminOptions{
		"address already in use":                             {Address: taken.Addr().String()},
		"manager: admin: serve pipe: too many files":         {Listener: brokenListener{newPipe()}},
		"manager: admin: listen tcp: address nowhere: missi": {Address: "nowhere"},
	} {
		var j journal
		m := newManager(t, manager.Options{Admin: o})
		cache := j.newPart("cache")
		place(t, m, manager.Caches, cache)
		require.ErrorContains(t, m.Run(t.Context()), says)
		if o.Listener == nil {
			require.Empty(t, j.lines, "nothing begins where nobody can ask how it fares")
		}
	}
	for says, o := range map[string]manager.ServerOptions{
		"a Handler":                    {Address: ":0"},
		"either an Address or":         {Handler: http.NotFoundHandler()},
		"either an Address or a Liste": {Handler: http.NotFoundHandler(), Address: ":0", Listener: newPipe()},
	} {
		require.ErrorContains(t, must.Err(manager.NewServer("x", o)), says)
	}
	require.ErrorContains(t, must.Err(manager.NewServer("", manager.ServerOptions{Address: ":0", Handler: http.NotFoundHandler()})), "a name")
}

// TestServerOverLoopback tests an address and TLS, which need a socket.
func TestServerOverLoopback(t *testing.T) {
	borrowed := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer borrowed.Close()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	server := must.Get(manager.NewServer("secure", manager.ServerOptions{
		Address: "127.0.0.1:0", Handler: hello, TLS: &tls.Config{Certificates: borrowed.TLS.Certificates, MinVersion: tls.VersionTLS12},
	}))(t)
	require.Nil(t, server.Addr())
	m := newManager(t, manager.Options{})
	require.NoError(t, m.Add(server))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	<-server.Synced()
	client := borrowed.Client()
	defer client.CloseIdleConnections()
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Addr().String())
	}
	response := must.Get(client.Get("https://example.com/"))(t)
	text := must.Get(io.ReadAll(response.Body))(t)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "hello", string(text))
	cancel()
	require.NoError(t, <-ended)
	require.ErrorIs(t, server.Run(t.Context()), manager.ErrRunning)
}

func TestAdminAnswersWhatItIsAskedFor(t *testing.T) {
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, text+" "+r.URL.Path) })
	}
	for _, off := range []string{"", "0"} {
		m := newManager(t, manager.Options{Admin: manager.AdminOptions{Address: off}})
		require.NoError(t, m.Add(new(journal).newPart("admin")), "the name is free where there is no server")
	}
	m := newManager(t, manager.Options{})
	closed, open := m.AdminHandler(manager.AdminOptions{}), m.AdminHandler(manager.AdminOptions{
		Metrics: says("metrics"), Profile: says("profile"), Debug: true,
	})
	for path, want := range map[string]string{
		"/metrics":            "metrics /metrics",
		"/debug/pprof/":       "profile /debug/pprof/",
		"/debug/pprof/heap":   "profile /debug/pprof/heap",
		"/debug/controllers/": "[]\n",
	} {
		code, _ := ask(closed, path)
		require.Equal(t, 404, code, path)
		_, text := ask(open, path)
		require.Equal(t, want, text)
	}
	for _, path := range []string{"/healthz", "/healthz/ping", "/livez", "/readyz/shutdown"} {
		code, text := ask(closed, path)
		require.Equal(t, 200, code, path)
		require.Equal(t, "ok", text)
	}
	for _, path := range []string{"/", "/debug/why/default/web", "/debug/controllers/nobody"} {
		code, _ := ask(open, path)
		require.Equal(t, 404, code, path)
	}
	_, pattern := http.DefaultServeMux.Handler(httptest.NewRequest(http.MethodGet, "/debug/pprof/", nil))
	require.Empty(t, pattern, "net/http/pprof is linked")
}

// talker writes its name as the answer.
type talker struct {
	part
	code int
}

func (t *talker) DebugHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(t.code)
		_, _ = io.WriteString(w, t.name)
	})
}

// TestDebugAsksTheControllers has two controllers that know an object, and one that does not.
func TestDebugAsksTheControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := served(t)
		createMap(s, "one")
		client := s.Connect(nil)
		m := newManager(t, manager.Options{})
		maps := mapInformer(client)
		require.NoError(t, m.Add(maps))
		for _, name := range []string{"lower", "greeter"} {
			ctl := controller.New(name, controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
				return controller.Result{}, errors.New(name + " is broken")
			}), controller.Options{Tuning: controller.Tuning{History: 10}})
			ctl.Watch(controller.For(maps))
			require.NoError(t, m.Add(ctl))
		}
		require.NoError(t, m.Add(controller.New("idle", controller.Func[api.Key](nil), controller.Options{})))
		run(t, m)
		h := m.AdminHandler(manager.AdminOptions{Debug: true})
		_, text := ask(h, "/debug/controllers/")
		require.JSONEq(t, `["greeter","idle","lower"]`, text)
		_, text = ask(h, "/debug/controllers/idle")
		require.Contains(t, text, `"Name": "idle"`)
		code, text := ask(h, "/debug/why/default/one")
		require.Equal(t, 200, code)
		require.Less(t, strings.Index(text, "greeter is broken"), strings.Index(text, "lower is broken"))
		require.NotContains(t, text, "idle")
		code, _ = ask(h, "/debug/why/default/two")
		require.Equal(t, 404, code)
		_, text = ask(h, "/debug/controllers/lower/why/default/one")
		require.Contains(t, text, "lower is broken")
		require.NotContains(t, text, "greeter is broken")
		for name, code := range map[string]int{"prose": 200, "{}": 404} {
			require.NoError(t, m.Add(&talker{part: *new(journal).newPart(name), code: code}))
		}
		code, _ = ask(h, "/debug/why/default/two")
		require.Equal(t, 404, code, "what is no JSON, or no answer, is left out")
	})
}
