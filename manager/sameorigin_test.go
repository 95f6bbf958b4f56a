package manager_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
)

// TestAdminRefusesWebPages asks for everything that an admin server has: as web pages of other origins do, and as
// programs and people do.
func TestAdminRefusesWebPages(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	says := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") })
	m := newManager(t, manager.Options{Admin: manager.AdminOptions{
		Listener: listener, Metrics: says, Profile: says, Debug: true, AllowedHosts: []string{"admin.example"},
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(path, host string, header http.Header) (int, string) {
		r := must.Get(http.NewRequest(http.MethodGet, "http://"+listener.Addr().String()+path, nil))(t)
		r.Host = host
		r.Header = header
		response := must.Get(client.Do(r))(t)
		defer response.Body.Close()
		text := must.Get(io.ReadAll(response.Body))(t)
		return response.StatusCode, string(text)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	own := listener.Addr().String()
	browser := http.Header{"User-Agent": {"Mozilla/5.0"}, "Accept-Language": {"en"}}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/metrics", "/debug/pprof/heap", "/debug/controllers/", "/debug/informers", "/debug/options", "/"} {
		for name, page := range map[string]struct {
			host   string
			header http.Header
		}{
			"rebound":             {"evil.example:" + port, browser},
			"another port":        {"localhost:1", browser},
			"cross-site":          {own, http.Header{"Sec-Fetch-Site": {"cross-site"}}},
			"same-site":           {own, http.Header{"Sec-Fetch-Site": {"same-site"}}},
			"origin":              {own, http.Header{"Origin": {"https://evil.example"}}},
			"origin, opaque":      {own, http.Header{"Origin": {"null"}}},
			"rebound, by a proxy": {"evil.example", http.Header{"X-Forwarded-Host": {own}}},
		} {
			code, text := ask(path, page.host, page.header)
			require.Equal(t, 403, code, "%s of a page: %s", path, name)
			require.Contains(t, text, "sameorigin: ")
		}
		if path == "/" {
			continue
		}
		for _, host := range []string{own, "localhost:" + port, "admin.example"} {
			for _, header := range []http.Header{nil, browser, {"Sec-Fetch-Site": {"none"}}} {
				code, _ := ask(path, host, header)
				require.Equal(t, 200, code, "%s at %s", path, host)
			}
		}
	}
	cancel()
	require.NoError(t, <-ended)
}

// TestServersAnswerPagesUnlessToldNotTo has a server that is not the admin server, such as one of a web page.
func TestServersAnswerPagesUnlessToldNotTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipe()
		server := must.Get(manager.NewServer("open", manager.ServerOptions{Listener: l, Handler: http.NotFoundHandler()}))(t)
		m := newManager(t, manager.Options{})
		require.NoError(t, m.Add(server))
		run(t, m)
		client := http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
		r := must.Get(http.NewRequest(http.MethodGet, "http://open.example", nil))(t)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		response := must.Get(client.Do(r))(t)
		require.NoError(t, response.Body.Close())
		require.Equal(t, 404, response.StatusCode)
	})
	for says, o := range map[string]manager.ServerOptions{
		"manager: AllowedHosts of server x need SameOrigin":                        {AllowedHosts: []string{"leat.example"}},
		`manager: server x: sameorigin: allowed host "http://leat.example" is nei`: {SameOrigin: true, AllowedHosts: []string{"http://leat.example"}},
	} {
		o.Listener, o.Handler = newPipe(), http.NotFoundHandler()
		require.ErrorContains(t, must.Err(manager.NewServer("x", o)), says)
	}
	_, err := manager.New(manager.Options{Admin: manager.AdminOptions{Address: ":0", AllowedHosts: []string{"a b"}}})
	require.ErrorContains(t, err, `manager: server admin: sameorigin: allowed host "a b"`)
}

// TestSlowHeadersAreCut has a client that sends a byte a second: each arrives in time, and all of them do not.
func TestSlowHeadersAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipe()
		m := newManager(t, manager.Options{Admin: manager.AdminOptions{Listener: l}})
		b := run(t, m)
		conn := must.Get(l.dial(t.Context(), "", ""))(t)
		began := time.Now()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for _, c := range []byte("GET /healthz HTTP/1.1\r\nHost: admin\r\n\r\n") {
				<-time.After(time.Second)
				if _, err := conn.Write([]byte{c}); err != nil {
					return
				}
			}
		}()
		answer, _ := io.ReadAll(conn)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.NotContains(t, string(answer), "200 OK")
		<-gone
		must.Get(b.stop())(t)
	})
}
