package apiclient_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture/must"
)

// accept serves real sockets, one connection after the other.
func accept(t *testing.T, serve func(*net.TCPConn)) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { serve(conn.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// drain reads until the other side has closed.
func drain(c *net.TCPConn) {
	_, _ = io.Copy(io.Discard, c)
	_ = c.Close()
}

func TestAServerThatAcceptsAndSaysNothing(t *testing.T) {
	host := accept(t, drain)
	cfg := apiclient.WithTimeouts(apiclient.Config{Host: "https://" + host}, 50*time.Millisecond, time.Hour, time.Hour)
	start := time.Now()
	_, err := pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{})
	require.ErrorContains(t, err, "get pods default/web: net/http: TLS handshake timeout")
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
	require.Less(t, time.Since(start), 30*time.Second)

	cfg.ProxyURL = &url.URL{Scheme: "https", Host: host}
	_, err = pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "TLS with the proxy "+host)
}

// TestAHalfOpenConnectionEndsItsWatches has a dead path: the kernel acknowledges every byte, and nothing comes back.
// Only pings find this.
func TestAHalfOpenConnectionEndsItsWatches(t *testing.T) {
	a := newAuthority(t)
	host := onTLS(t, a.server(t, unchanged), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, onePod)
			return
		}
		_, _ = io.WriteString(w, frame(1))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	m := &middleman{to: strings.TrimPrefix(host, "https://")}
	gone := make(chan struct{})
	m.dropped.Store(&gone)
	cfg := apiclient.WithTimeouts(apiclient.Config{
		Host: "https://server.memory", TLS: apiclient.TLS{CAData: a.pem},
		ProxyURL: &url.URL{Scheme: "http", Host: proxyOver(t, m, nil)},
	}, 10*time.Second, 100*time.Millisecond, 100*time.Millisecond)
	v := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "")
	var failed error
	for _, err := range v.Watch(t.Context(), api.Options[*pod]{}) {
		failed = err
		if err == nil {
			m.dropped.Store(nil) // new connections work
			close(gone)
		}
	}
	require.ErrorContains(t, failed, "watch pods: ")
	require.NoError(t, must.Err(v.Get(t.Context(), web, metav1.GetOptions{})), "the dead connection is not used again")
}

// TestMoreWatchesThanAConnectionHasStreams opens more watches than the server allows on a connection of HTTP/2. The
// additional watches must not wait for the others, and must not delay a short call.
func TestMoreWatchesThanAConnectionHasStreams(t *testing.T) {
	const watches, streams = 300, 100
	a := newAuthority(t)
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, onePod)
			return
		}
		_, _ = io.WriteString(w, frame(1))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	server.TLS, server.EnableHTTP2 = a.server(t, unchanged), true
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	v := apiclient.NewPartial[*pod](newClient(t, apiclient.Config{Host: server.URL, TLS: apiclient.TLS{CAData: a.pem}}), podResource, "")
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel() // before the server closes, because it waits for the watches
	first := make(chan error)
	for range watches { // one after the other, because concurrent ones would each open a connection
		group.Go(func() {
			seen := false
			for _, err := range v.Watch(ctx, api.Options[*pod]{}) {
				if !seen {
					first <- err
				}
				seen = true
			}
		})
		require.NoError(t, <-first)
	}
	must.Get(v.Get(t.Context(), web, metav1.GetOptions{}))(t)
	require.EqualValues(t, watches/streams+1, conns.Load(), "the other connections are full, so the call gets its own")
}

func TestHTTP2CanBeDisabled(t *testing.T) {
	a := newAuthority(t)
	var proto atomic.Value
	host := onTLS(t, a.server(t, unchanged), func(w http.ResponseWriter, r *http.Request) {
		proto.Store(r.Proto)
		answer(200, jsonType, onePod)(w, r)
	})
	for without, want := range map[bool]string{true: "HTTP/1.1", false: "HTTP/2.0"} {
		cfg := apiclient.Config{Host: host, TLS: apiclient.TLS{CAData: a.pem}, DisableHTTP2: without}
		must.Get(pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{}))(t)
		require.Equal(t, want, proto.Load())
	}
}

// TestIdleConnectionsAreKept sends as many concurrent requests as there may be idle connections, twice.
func TestIdleConnectionsAreKept(t *testing.T) {
	onRig(t, func(t *testing.T, r *rig) {
		const calls = 25
		arrived := make(chan struct{}, calls)
		release := make(chan struct{})
		refuse := func(*http.Request) bool {
			arrived <- struct{}{}
			<-release
			return false
		}
		r.refuse.Store(&refuse)
		cfg := r.config()
		cfg.DisableHTTP2 = true
		v := r.view(cfg)
		for range 2 {
			var group sync.WaitGroup
			for range calls {
				group.Go(func() { _, _ = v.Get(t.Context(), web, metav1.GetOptions{}) })
			}
			for range calls {
				<-arrived
			}
			for range calls {
				release <- struct{}{}
			}
			group.Wait()
			synctest.Wait()
		}
		require.EqualValues(t, calls, r.opened.Load())
		require.Zero(t, r.closed.Load())
		in(90 * time.Second)
		require.EqualValues(t, calls, r.closed.Load(), "idle connections were closed")
	})
}

// TestAnAnswerThatCannotBeReadIsNotQuotedWithCredentials has servers that echo the request in an invalid answer, which
// net/http quotes.
func TestAnAnswerThatCannotBeReadIsNotQuotedWithCredentials(t *testing.T) {
	for name, head := range map[string]string{
		"header":  "HTTP/1.1 200 OK\r\n: %s\r\n\r\n",
		"status":  "%s HTTP/1.1\r\n\r\n",
		"code":    "HTTP/1.1 %s\r\n\r\n",
		"length":  "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n",
		"type":    "HTTP/1.1 200 OK\r\nContent-Type: text/%s\r\nContent-Length: 2\r\n\r\n{}",
		"page":    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n%s",
		"away":    "HTTP/1.1 302 Found\r\nLocation: http://other.example/%s\r\nContent-Length: 0\r\n\r\n",
		"broken":  "HTTP/1.1 302 Found\r\nLocation: http://other.example:%s/\r\nContent-Length: 0\r\n\r\n",
		"coding":  "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: 2\r\n\r\n{}",
		"object":  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n%s",
		"kind":    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + `{"kind":"%[1]s","apiVersion":"%[1]s","metadata":{"name":"web"}}`,
		"member":  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + `{"metadata":{"creationTimestamp":"%s"}}`,
		"details": "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + `{"kind":"Status","reason":"%[1]s","message":"%[1]s","details":{"name":"%[1]s","causes":[{"message":"%[1]s","field":"%[1]s"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			host := accept(t, func(c *net.TCPConn) {
				_, _ = c.Read(make([]byte, 4096))
				_, _ = fmt.Fprintf(c, head, secret)
				_ = c.CloseWrite()
				drain(c)
			})
			_, err := pods(t, apiclient.Config{Host: "http://" + host, BearerToken: apiclient.NewSecret(secret)}).Get(t.Context(), web, metav1.GetOptions{})
			require.Error(t, err)
			var page *apiclient.ContentTypeError
			var away *apiclient.RedirectError
			require.Equal(t, name == "page" || name == "type", asError(err, &page), "%v", err)
			require.Equal(t, name == "away", asError(err, &away), "%v", err)
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
				require.NotContains(t, fmt.Sprintf(verb, err), secret)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				require.NotContains(t, fmt.Sprintf("%+v %#v", e, e), secret)
			}
		})
	}
}

func TestTheServerIsFoundByAddressesOfEveryKind(t *testing.T) {
	a := newAuthority(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here: ", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(answer(200, jsonType, onePod)), ErrorLog: log.New(io.Discard, "", 0)}
	var serving sync.WaitGroup
	config := a.server(t, unchanged)
	serving.Go(func() { _ = server.Serve(tls.NewListener(l, config)) })
	defer serving.Wait()
	defer server.Close()
	cfg := apiclient.Config{Host: "https://" + l.Addr().String(), TLS: apiclient.TLS{CAData: a.pem}}
	require.ErrorContains(t, must.Err(pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{})), "not ::1")
	cfg.TLS.ServerName = "server.memory"
	must.Get(pods(t, cfg).Get(t.Context(), web, metav1.GetOptions{}))(t)
}

// TestAnAnswerThatSwitchesProtocolsEnds has a connection that net/http returns and then no longer manages.
func TestAnAnswerThatSwitchesProtocolsEnds(t *testing.T) {
	ended := make(chan error, 1)
	cfg := onLoopback(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			ended <- err
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tea\r\n\r\n")
		_, err = io.Copy(io.Discard, conn)
		ended <- err
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorContains(t, must.Err(pods(t, cfg).Get(ctx, web, metav1.GetOptions{})), "101 Switching Protocols")
	require.NoError(t, ctx.Err())
	require.NoError(t, <-ended, "the connection was not closed")
}
