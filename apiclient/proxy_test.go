package apiclient_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// middleman is the common part of the proxies. It always connects to one address, and records the requested name.
type middleman struct {
	to      string
	want    string // Proxy-Authorization, or user:password for SOCKS
	refuse  int    // the code of the answer to CONNECT; 0 connects
	asked   atomic.Value
	dropped atomic.Pointer[chan struct{}] // closed: existing tunnels drop all bytes
	tunnels sync.WaitGroup
}

// join copies bytes in both directions until one side closes.
func (m *middleman) join(client net.Conn, early io.Reader) {
	server, err := net.Dial("tcp", m.to)
	if err != nil {
		_ = client.Close()
		return
	}
	var gone <-chan struct{}
	if d := m.dropped.Load(); d != nil {
		gone = *d
	}
	for _, way := range []struct {
		from io.Reader
		to   net.Conn
	}{{early, server}, {server, client}} {
		m.tunnels.Go(func() {
			_, _ = io.Copy(forgetful{way.to, gone}, way.from)
			_, _ = client.Close(), server.Close()
		})
	}
}

// forgetful reports a write without writing.
type forgetful struct {
	net.Conn
	gone <-chan struct{}
}

func (f forgetful) Write(p []byte) (int, error) {
	select {
	case <-f.gone:
		return len(p), nil
	default:
		return f.Conn.Write(p)
	}
}

// ServeHTTP is an HTTP proxy that supports only CONNECT.
func (m *middleman) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.asked.Store(r.Host)
	switch {
	case r.Method != http.MethodConnect:
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	case m.refuse != 0:
		w.WriteHeader(m.refuse)
		return
	case m.want != "" && r.Header.Get("Proxy-Authorization") != m.want:
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	m.join(conn, buffered)
}

// proxyOver serves a middleman as an HTTP proxy, with TLS if c is not nil.
func proxyOver(t *testing.T, m *middleman, c *tls.Config) string {
	t.Helper()
	server := httptest.NewUnstartedServer(m)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if c == nil {
		server.Start()
	} else {
		server.TLS = c
		server.StartTLS()
	}
	t.Cleanup(func() {
		server.Close()
		m.tunnels.Wait()
	})
	return server.Listener.Addr().String()
}

// socksOver serves a middleman as a SOCKS5 proxy (RFC 1928 and 1929).
func socksOver(t *testing.T, m *middleman) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			m.tunnels.Go(func() { m.socks(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
		m.tunnels.Wait()
	})
	return l.Addr().String()
}

func (m *middleman) socks(conn net.Conn) {
	r := bufio.NewReader(conn)
	next := func(n int) []byte {
		b := make([]byte, n)
		_, _ = io.ReadFull(r, b)
		return b
	}
	text := func() string { return string(next(int(next(1)[0]))) }
	next(1)
	methods := text()
	if m.want != "" && strings.Contains(methods, "\x02") {
		_, _ = conn.Write([]byte{5, 2})
		next(1)
		if user, password := text(), text(); user+":"+password != m.want {
			_, _ = conn.Write([]byte{1, 1})
			_ = conn.Close()
			return
		}
		_, _ = conn.Write([]byte{1, 0})
	} else {
		_, _ = conn.Write([]byte{5, 0})
	}
	next(4) // version, command, reserved, and the type of the address: a name
	name := text()
	m.asked.Store(fmt.Sprintf("%s:%d", name, binary.BigEndian.Uint16(next(2))))
	_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	m.join(conn, r)
}

// behind starts a server that requires a client certificate, and returns the configuration of a client with one.
func behind(t *testing.T) (address string, c apiclient.Config) {
	t.Helper()
	a := newAuthority(t)
	config := a.server(t, unchanged)
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	host := onTLS(t, config, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret || r.Header.Get("Proxy-Authorization") != "" || r.ProtoMajor != 2 {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		answer(200, jsonType, onePod)(w, r)
	})
	cert, key := a.client(t, "jane")
	return strings.TrimPrefix(host, "https://"), apiclient.Config{
		Host: "https://server.memory:6443", BearerToken: apiclient.NewSecret(secret),
		TLS: apiclient.TLS{CAData: a.pem, CertData: cert, KeyData: apiclient.NewSecret(string(key))},
	}
}

const proxyPassword = "pr0xy&p4ss"

var (
	proxyUser  = url.UserPassword("joe", proxyPassword)
	proxyBasic = "Basic am9lOnByMHh5JnA0c3M="
)

func TestProxiesOfEveryKind(t *testing.T) {
	address, cfg := behind(t)
	ours := newAuthority(t)
	secure := ours.server(t, func(c *x509.Certificate) { c.Subject.CommonName = "proxy" })
	secure.ClientAuth = tls.RequestClientCert
	var shown atomic.Int32
	secure.VerifyConnection = func(s tls.ConnectionState) error {
		shown.Add(int32(len(s.PeerCertificates)))
		return nil
	}
	for name, start := range map[string]func(*middleman) url.URL{
		"http": func(m *middleman) url.URL {
			m.want = proxyBasic
			return url.URL{Scheme: "http", Host: proxyOver(t, m, nil)}
		},
		"https": func(m *middleman) url.URL {
			m.want = proxyBasic
			return url.URL{Scheme: "https", Host: proxyOver(t, m, secure)}
		},
		"socks5": func(m *middleman) url.URL {
			m.want = "joe:" + proxyPassword
			return url.URL{Scheme: "socks5", Host: socksOver(t, m)}
		},
		"socks5h": func(m *middleman) url.URL {
			m.want = "joe:" + proxyPassword
			return url.URL{Scheme: "socks5h", Host: socksOver(t, m)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &middleman{to: address}
			u := start(m)
			c := cfg
			// The proxy's certificate does not have this name, and the proxy does not request the client's.
			c.TLS.CAData = append(append([]byte{}, cfg.TLS.CAData...), ours.pem...)
			c.TLS.ServerName, c.Host = "server.memory", "https://far.example"
			u.User = proxyUser
			c.ProxyURL = &u
			r := pods(t, c)
			for range 2 {
				require.Equal(t, "web", must.Get(r.Get(t.Context(), web, metav1.GetOptions{}))(t).Name)
			}
			require.Equal(t, "far.example:443", m.asked.Load())
			require.Zero(t, shown.Load(), "no client certificate for a proxy")

			r.Client().CloseIdleConnections()
			u.User = url.UserPassword("joe", "wr0ng")
			c.ProxyURL = &u
			_, err := pods(t, c).Get(t.Context(), web, metav1.GetOptions{})
			require.Error(t, err)
			require.NotContains(t, err.Error(), "wr0ng")
			if strings.HasPrefix(name, "socks") {
				require.ErrorContains(t, err, "username/password authentication failed")
				return
			}
			var typed *apiclient.ProxyError
			require.ErrorAs(t, err, &typed)
			require.Equal(t, apiclient.ProxyError{Proxy: u.Host, StatusCode: 407, Status: "407 Proxy Authentication Required"}, *typed)
			require.ErrorContains(t, err, "get pods default/web: apiclient: the proxy "+u.Host+" did not connect: it answered 407 Proxy Authentication Required")
		})
	}
}

// TestAWebSocketGoesThroughAProxy watches a server with TLS.
func TestAWebSocketGoesThroughAProxy(t *testing.T) {
	s := testserver.New(testserver.Options{TLS: true})
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	fixture.Start(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
	m := &middleman{to: l.Addr().String(), want: proxyBasic}
	client := must.Get(apiclient.New(apiclient.Config{
		Host: "https://" + l.Addr().String(), TLS: apiclient.TLS{CAData: s.CA()},
		ProxyURL: &url.URL{Scheme: "http", Host: proxyOver(t, m, nil), User: proxyUser},
	}))(t)
	namespaces := api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
	watch := websocket.Watch(apiclient.NewPartial[*metav1.PartialObjectMetadata](client, namespaces, "")).Watch
	for e, err := range watch(t.Context(), api.Options[*metav1.PartialObjectMetadata]{}) {
		require.NoError(t, err)
		require.NotEmpty(t, e.Object.GetName())
		break
	}
	require.Equal(t, l.Addr().String(), m.asked.Load())
}

func TestAnswersOfProxiesAreNamed(t *testing.T) {
	address, cfg := behind(t)
	for _, code := range []int{http.StatusBadGateway, http.StatusForbidden, http.StatusServiceUnavailable, http.StatusNoContent} {
		m := &middleman{to: address, refuse: code}
		cfg.ProxyURL = &url.URL{Scheme: "http", Host: proxyOver(t, m, nil), User: proxyUser}
		_, err := pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{})
		var typed *apiclient.ProxyError
		require.ErrorAs(t, err, &typed)
		require.Equal(t, code, typed.StatusCode)
		var status *apierrors.StatusError
		require.False(t, asError(err, &status), "%v", err)
	}
}

func TestAProxysCertificateIsVerified(t *testing.T) {
	address, cfg := behind(t)
	ours := newAuthority(t)
	var u url.URL
	get := func(config *tls.Config, change func(*apiclient.Config)) error {
		u = url.URL{Scheme: "https", Host: proxyOver(t, &middleman{to: address}, config)}
		c := cfg
		c.ProxyURL = &u
		change(&c)
		_, err := pods(t, c).Get(t.Context(), web, metav1.GetOptions{})
		return err
	}
	same := func(*apiclient.Config) {}
	trusting := func(c *apiclient.Config) { c.TLS.CAData = append(append([]byte{}, cfg.TLS.CAData...), ours.pem...) }
	for name, c := range map[string]struct {
		proxy  *tls.Config
		change func(*apiclient.Config)
		want   string
	}{
		"of an unknown authority": {ours.server(t, unchanged), same, "unknown authority"},
		"of another host": {
			ours.server(t, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }), trusting, "not 127.0.0.1",
		},
		"a client's": {
			ours.server(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), trusting, "key usage",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := get(c.proxy, c.change)
			var typed *apiclient.CertificateError
			require.ErrorAs(t, err, &typed)
			require.Equal(t, u.Host, typed.Host, "the proxy is named, not the server")
			require.ErrorContains(t, err, c.want)
		})
	}
	t.Run("an https proxy that requires a client certificate", func(t *testing.T) {
		config := ours.server(t, unchanged)
		config.ClientAuth, config.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12
		require.ErrorContains(t, get(config, trusting), u.Host+" requires a client certificate")
	})
	t.Run("insecure", func(t *testing.T) {
		require.NoError(t, get(ours.server(t, unchanged), func(c *apiclient.Config) { c.TLS.CAData, c.TLS.Insecure = nil, true }))
	})
}

// TestAProxyThatEchoesCredentials has a proxy that forwards plain HTTP and quotes the request.
func TestAProxyThatEchoesCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
		_, _ = fmt.Fprintf(w, "%s and %s and %s", r.Header, proxyPassword, url.QueryEscape(proxyPassword))
	}))
	defer server.Close()
	u := proxy(server.URL)
	u.User = proxyUser
	_, err := pods(t, apiclient.Config{Host: "http://far.example", BearerToken: apiclient.NewSecret(secret), ProxyURL: u}).
		Get(t.Context(), web, metav1.GetOptions{})
	require.ErrorContains(t, err, "the server answered 407 Proxy Authentication Required: ")
	require.ErrorContains(t, err, "REDACTED")
	for _, bad := range []string{secret, proxyPassword, strings.TrimPrefix(proxyBasic, "Basic "), url.QueryEscape(proxyPassword)} {
		require.NotContains(t, err.Error(), bad)
	}
}

// TestTheEnvironmentsProxies runs itself in another process, because net/http reads the environment once per process.
func TestTheEnvironmentsProxies(t *testing.T) {
	urls := []string{"http://far.example", "https://far.example", "https://near.example", "https://10.1.2.3:6443", "https://[fd00::1]", "https://localhost:6443"}
	if os.Getenv("LEAT_TEST_PROXIES") != "" {
		transport := transportOf(t, newClient(t, apiclient.Config{Host: "https://h"})).(*http.Transport)
		dialled := transportOf(t, newClient(t, apiclient.Config{Host: "https://h", DialContext: (&net.Dialer{}).DialContext})).(*http.Transport)
		require.Nil(t, dialled.Proxy, "DialContext disables the proxies of the environment")
		chosen := map[string]string{}
		for _, to := range urls {
			req := httptest.NewRequest(http.MethodGet, to, nil)
			u := must.Get(transport.Proxy(req))(t)
			chosen[to] = fmt.Sprint(u)
		}
		require.NoError(t, json.NewEncoder(os.Stderr).Encode(chosen))
		return
	}
	again := exec.Command(os.Args[0], "-test.run=^TestTheEnvironmentsProxies$")
	again.Env = append(os.Environ(), "LEAT_TEST_PROXIES=1", "HTTP_PROXY=http://plain.example:3128", "HTTPS_PROXY=https://secure.example", "NO_PROXY=near.example,10.0.0.0/8")
	var out strings.Builder
	again.Stderr = &out
	require.NoError(t, again.Run(), out.String())
	var chosen map[string]string
	require.NoError(t, json.Unmarshal([]byte(out.String()), &chosen), out.String())
	require.Equal(t, map[string]string{
		"http://far.example": "http://plain.example:3128",
		// net/http does not know about TLS to the proxy.
		"https://far.example":  "http://secure.example:443",
		"https://[fd00::1]":    "http://secure.example:443",
		"https://near.example": "<nil>", "https://10.1.2.3:6443": "<nil>", "https://localhost:6443": "<nil>",
	}, chosen)
}
