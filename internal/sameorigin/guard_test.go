package sameorigin_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/sameorigin"
)

var (
	onLoopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081}
	onIPv6     = &net.TCPAddr{IP: net.IPv6loopback, Port: 8081}
	onPort80   = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	everywhere = &net.TCPAddr{IP: net.IPv6unspecified, Port: 8081}
	onPod      = &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 8081}
	onSocket   = &net.UnixAddr{Name: "/run/leat.sock", Net: "unix"}
)

// headers are those that one kind of client sends beside Host.
type headers map[string]string

// What scripts and people make browsers send. Sec-Fetch-* go to https, localhost and loopback addresses alone.
var (
	plain    = headers{"User-Agent": firefox, "Accept": "*/*", "Accept-Encoding": "gzip, deflate", "Accept-Language": "en-US,en;q=0.9"}
	typed    = plain.and("Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-User", "?1", "Sec-Fetch-Dest", "document")
	ownPage  = plain.and("Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty")
	disguise = plain.and("User-Agent", "curl/8.5.0", "Accept-Language", "") // all that a script of Firefox can do
)

const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// Programs.
var (
	curl       = headers{"User-Agent": "curl/8.5.0", "Accept": "*/*"}
	probe      = headers{"User-Agent": "kube-probe/1.37", "Accept": "*/*", "Connection": "close"}
	prometheus = headers{"User-Agent": "Prometheus/3.5.0", "Accept": "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", "X-Prometheus-Scrape-Timeout-Seconds": "10"}
)

// and returns the headers with further ones, which come in pairs.
func (h headers) and(more ...string) headers {
	all := headers{}
	for k, v := range h {
		all[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// answer is what a request got.
type answer struct {
	code   int
	header http.Header
	body   string
	acted  bool // the request reached what is guarded
}

// send makes one request of a server whose listener is said to be at an address.
func send(t *testing.T, at net.Addr, allowed []string, method, host string, h headers, body string) answer {
	t.Helper()
	guard := must.Get(sameorigin.New(allowed))(t)
	var a answer
	server := httptest.NewServer(guard.Handler(at, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a.acted = true
		_, _ = io.WriteString(w, "data")
	})))
	defer server.Close()
	r := must.Get(http.NewRequest(method, server.URL, strings.NewReader(body)))(t)
	r.Host = host
	for name, value := range h {
		r.Header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	response := must.Get(server.Client().Do(r))(t)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(t)
	a.code, a.header, a.body = response.StatusCode, response.Header, string(text)
	return a
}

func requireRefused(t *testing.T, code int, a answer) {
	t.Helper()
	require.Equal(t, code, a.code)
	require.False(t, a.acted, "it had an effect")
	require.NotContains(t, a.body, "data")
	require.Empty(t, a.header.Values("Access-Control-Allow-Origin"))
}

// TestHosts is about DNS rebinding. If the name of a page resolves to the server's address, the browser treats both
// as one origin: it sends no Origin, and no Sec-Fetch-Site that helps.
func TestHosts(t *testing.T) {
	tunnel := []string{"localhost:9000", "leat.example"}
	for _, c := range []struct {
		name    string
		at      net.Addr
		allowed []string
		host    string
		client  headers
		ok      bool
	}{
		{"rebound", onLoopback, nil, "evil.example:8081", plain, false},
		{"rebound, port 80", onPort80, nil, "evil.example", plain, false},
		{"rebound, with fetch metadata", onLoopback, nil, "evil.example:8081", ownPage, false},
		{"rebound, disguised", onLoopback, nil, "evil.example:8081", disguise, false},
		{"rebound, looks like an address", onLoopback, nil, "127.0.0.1.evil.example:8081", plain, false},
		{"rebound, looks like localhost", onLoopback, nil, "localhost.evil.example:8081", plain, false},
		{"rebound, other port", onLoopback, nil, "evil.example:9000", plain, false},
		{"rebound, from everywhere", everywhere, nil, "evil.example:8081", plain, false},
		{"rebound, from everywhere, disguised", everywhere, nil, "evil.example:8081", disguise, false},
		{"rebound to a Pod", onPod, nil, "evil.example:8081", plain, false},
		{"rebound to a Pod, like a Service", onPod, nil, "leat.shop.svc:8081", plain, false},
		{"a program by a strange name", onLoopback, nil, "evil.example:8081", curl, false},
		{"every address is not loopback's", onLoopback, nil, "0.0.0.0:8081", plain, false},
		{"an address of another interface", onLoopback, nil, "10.1.2.3:8081", plain, false},

		{"typed", onLoopback, nil, "localhost:8081", typed, true},
		{"typed, in capitals", onLoopback, nil, "LocalHost:8081", typed, true},
		{"typed, an address", onLoopback, nil, "127.0.0.1:8081", typed, true},
		{"typed, another loopback address", onLoopback, nil, "127.8.9.1:8081", typed, true},
		{"typed, IPv6", onIPv6, nil, "[::1]:8081", typed, true},
		{"typed, mapped", onIPv6, nil, "[::ffff:127.0.0.1]:8081", typed, true},
		{"port 80 need not be said", onPort80, nil, "localhost", typed, true},
		{"but another one", onLoopback, nil, "localhost", typed, false},
		{"wrong port", onLoopback, nil, "localhost:9000", typed, false},
		{"tunnel", onLoopback, tunnel, "localhost:9000", typed, true},
		{"tunnel, wrong port", onLoopback, tunnel, "localhost:9001", typed, false},
		{"proxy, any port", onLoopback, tunnel, "leat.example:8443", typed, true},
		{"proxy, no port", onLoopback, tunnel, "Leat.example", typed, true},
		{"not below an allowed name", onLoopback, tunnel, "www.leat.example", typed, false},

		{"probe", onPod, nil, "10.1.2.3:8081", probe, true},
		{"probe, every address", everywhere, nil, "10.1.2.3:8081", probe, true},
		{"probe, IPv6", everywhere, nil, "[fd00::17]:8081", probe, true},
		{"probe on the host", onLoopback, nil, "127.0.0.1:8081", probe, true},
		{"Prometheus by address", everywhere, nil, "10.1.2.3:8081", prometheus, true},
		{"Prometheus by Service", everywhere, nil, "leat.shop.svc.cluster.local:8081", prometheus, true},
		{"Prometheus by short name", onPod, nil, "leat.shop:8081", prometheus, true},
		{"port-forward", everywhere, nil, "localhost:9000", typed, true},
		{"browser by address", everywhere, nil, "10.1.2.3:8081", plain, true},
		{"browser by allowed name", everywhere, tunnel, "leat.example", plain, true},
		{"socket", onSocket, nil, "leat", curl, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := send(t, c.at, c.allowed, http.MethodGet, c.host, c.client, "")
			if c.ok {
				require.Equal(t, 200, a.code, a.body)
				require.Equal(t, "data", a.body)
				return
			}
			requireRefused(t, 403, a)
		})
	}
}

// TestOrigins has a page ask in each way in which pages can.
func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		name, method string
		at           net.Addr
		host         string
		client       headers
	}{
		{"fetch", "GET", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", "https://evil.example")},
		{"fetch without CORS", "GET", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors")},
		{"image", "GET", onLoopback, "127.0.0.1:8081", plain.and("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image")},
		{"script", "GET", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "script")},
		{"frame", "GET", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe")},
		{"link", "GET", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-User", "?1")},
		{"another local server", "GET", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "same-site", "Origin", "http://localhost:3000")},
		{"another local server, old browser", "GET", onLoopback, "localhost:8081", plain.and("Origin", "http://localhost:3000")},
		{"fetch, old browser", "GET", onLoopback, "localhost:8081", plain.and("Origin", "https://evil.example")},
		{"a name that begins alike", "GET", onLoopback, "localhost:8081", plain.and("Origin", "http://localhost:8081.evil.example")},
		{"user info", "GET", onLoopback, "localhost:8081", plain.and("Origin", "http://localhost:8081@evil.example")},
		{"opaque origin", "GET", onLoopback, "localhost:8081", plain.and("Origin", "null")},
		{"file", "POST", onLoopback, "localhost:8081", plain.and("Origin", "file://")},
		{"extension", "GET", onLoopback, "localhost:8081", plain.and("Origin", "moz-extension://17")},
		{"preflight", "OPTIONS", onLoopback, "localhost:8081", plain.and("Origin", "https://evil.example", "Access-Control-Request-Method", "DELETE")},
		{"WebSocket", "GET", onLoopback, "localhost:8081", plain.and("Origin", "https://evil.example", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "x")},
		{"form", "POST", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example", "Content-Type", "application/x-www-form-urlencoded")},
		{"form, opaque", "POST", onLoopback, "localhost:8081", plain.and("Origin", "null", "Content-Type", "text/plain")},
		{"body without a type", "POST", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example")},
		{"beacon", "POST", onLoopback, "localhost:8081", plain.and("Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example", "Content-Type", "text/plain;charset=UTF-8")},
		{"put", "PUT", onLoopback, "localhost:8081", plain.and("Origin", "https://evil.example", "Content-Type", "application/json")},
		{"delete", "DELETE", onLoopback, "localhost:8081", plain.and("Origin", "https://evil.example")},
		{"fetch from a Pod", "GET", onPod, "10.1.2.3:8081", plain.and("Origin", "https://evil.example")},
		{"form to a Pod", "POST", onPod, "10.1.2.3:8081", plain.and("Origin", "https://evil.example", "Content-Type", "text/plain")},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := ""
			if c.method == http.MethodPost || c.method == http.MethodPut {
				body = "{}"
			}
			requireRefused(t, 403, send(t, c.at, nil, c.method, c.host, c.client, body))
		})
	}
	own := plain.and("Origin", "http://localhost:8081", "Content-Type", "application/json")
	require.True(t, send(t, onLoopback, nil, "POST", "localhost:8081", own, "{}").acted, "a page of the server itself")
	proxied := plain.and("Origin", "https://leat.example", "Content-Type", "application/json")
	require.True(t, send(t, onLoopback, []string{"leat.example"}, "POST", "localhost:8081", proxied, "{}").acted, "a proxy that changes Host")
}

// TestForms sends what old browsers send without Origin.
func TestForms(t *testing.T) {
	for kind, ok := range map[string]bool{
		"text/plain": false, "text/plain;charset=UTF-8": false, " Text/Plain ; x": false, "text/plain;application/json": false,
		"multipart/form-data; boundary=x": false, "application/x-www-form-urlencoded": false, "": false,
		"application/json": true, "application/merge-patch+json": true, "application/octet-stream": true,
	} {
		for _, method := range []string{"POST", "PUT", "PATCH"} {
			client := plain
			if kind != "" {
				client = plain.and("Content-Type", kind)
			}
			a := send(t, onLoopback, nil, method, "localhost:8081", client, "{}")
			if ok {
				require.True(t, a.acted, kind)
			} else {
				requireRefused(t, 415, a)
			}
		}
	}
	require.True(t, send(t, onLoopback, nil, "POST", "localhost:8081", plain, "").acted, "there is no body to refuse")
}

func TestAnswersAreNotEmbedded(t *testing.T) {
	a := send(t, onPod, nil, http.MethodGet, "10.1.2.3:8081", plain, "") // a script element: neither Origin nor Sec-Fetch-Site
	require.Equal(t, "same-origin", a.header.Get("Cross-Origin-Resource-Policy"))
}

// TestProgramsAreAnswered sends what no browser would.
func TestProgramsAreAnswered(t *testing.T) {
	for _, at := range []net.Addr{onLoopback, everywhere} {
		for name, client := range map[string]headers{
			"curl":               curl,
			"curl -d":            curl.and("Content-Type", "application/x-www-form-urlencoded"),
			"kubectl create":     {"User-Agent": "kubectl/v1.37.2 (linux/amd64)", "Content-Type": "application/json"},
			"kubectl --raw":      {"User-Agent": "kubectl/v1.37.2 (linux/amd64)"},
			"a WebSocket client": {"Origin": "http://127.0.0.1:8081"},
		} {
			a := send(t, at, nil, http.MethodPost, "127.0.0.1:8081", client, "{}")
			require.Equal(t, 200, a.code, name)
			require.True(t, a.acted, name)
		}
	}
}

// TestOddHosts has values that an http.Client does not send. Some balancers probe with HTTP/1.0, which has no Host.
func TestOddHosts(t *testing.T) {
	guard := must.Get(sameorigin.New(nil))(t)
	for host, code := range map[string]int{
		"": 404, "a b": 403, "evil/example": 403, "evil.example@localhost:8081": 403, "localhost:8081:8081": 403, "[::1": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		r.Host = host
		w := httptest.NewRecorder()
		guard.Handler(onLoopback, http.NotFoundHandler()).ServeHTTP(w, r)
		require.Equal(t, code, w.Code, host)
	}
}

func TestAllowedHosts(t *testing.T) {
	for _, wrong := range []string{"", ":80", "http://leat.example", "leat.example/", "a b", "x@leat.example", "leat.example:http"} {
		require.ErrorContains(t, must.Err(sameorigin.New([]string{"leat.example", wrong})), "is neither a host nor a host:port", wrong)
	}
	must.Get(sameorigin.New([]string{"leat.example:8443", "10.1.2.3", "[::1]:80", "localhost"}))(t)
}
