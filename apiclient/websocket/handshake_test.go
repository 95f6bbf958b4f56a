package websocket_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/testserver"
)

// oneEvent sends one event and closes regularly.
var oneEvent = upgraded(func(c *ws.Conn) {
	_ = c.WriteMessage(ws.TextMessage, event("6"))
	goodbye(c)
})

func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *http.Request
		lw := subject(t, func(c *apiclient.Config) { c.BearerToken = apiclient.NewSecret(secret) }, func(w http.ResponseWriter, r *http.Request) {
			got = r
			oneEvent(w, r)
		})
		require.Equal(t, []string{"6"}, must.Get(collect(lw, t.Context()))(t))
		require.Equal(t, "/base/api/v1/namespaces/default/pods", got.URL.Path)
		require.Equal(t, "resourceVersion=5&watch=true", got.URL.RawQuery)
		require.Equal(t, "server.memory", got.Host)
		require.Equal(t, "http://server.memory", got.Header.Get("Origin"), "kube-apiserver answers 403 without it")
		require.Empty(t, got.Header.Values("Sec-Websocket-Protocol"), "kube-apiserver answers 400 to two of them")
		require.Empty(t, got.Header.Values("Sec-Websocket-Extensions"))
		require.Empty(t, got.Header.Values("Accept-Encoding"))
		require.Equal(t, "Bearer "+secret, got.Header.Get("Authorization"))
		require.Contains(t, got.Header.Get("User-Agent"), "leat/")
		require.Contains(t, got.Header.Get("Accept"), codec.MediaTypeProtobuf)
	})
}

// answer writes one answer.
func answer(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Retry-After", "4")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// switched answers 101 with headers that replace the correct ones or are added to them.
func switched(headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		up := ws.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		c, err := up.Upgrade(&rewriter{ResponseWriter: w, headers: headers}, r, nil)
		if err == nil {
			_, _, _ = c.NextReader() // until the client has closed
			_ = c.Close()
		}
	}
}

// rewriter is a hijacked connection. Its first write is the answer, and it changes that.
type rewriter struct {
	http.ResponseWriter
	headers []string
}

type rewritten struct {
	net.Conn
	headers []string
}

func (w *rewriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	return &rewritten{Conn: c, headers: w.headers}, rw, err
}

func (c *rewritten) Write(p []byte) (int, error) {
	if c.headers == nil {
		return c.Conn.Write(p)
	}
	head := string(p)
	for _, h := range c.headers {
		name, _, _ := strings.Cut(h, ":")
		if at := strings.Index(head, name+":"); at >= 0 {
			head = head[:at] + head[at+strings.Index(head[at:], "\r\n")+2:]
		}
		head = strings.Replace(head, "\r\n", "\r\n"+h+"\r\n", 1)
	}
	c.headers = nil
	_, err := io.WriteString(c.Conn, head)
	return len(p), err
}

func isUpgrade(code int) func(error) bool {
	return func(err error) bool {
		var u *websocket.UpgradeError
		return errors.As(err, &u) && u.StatusCode == code
	}
}

func isRedirect(to string) func(error) bool {
	return func(err error) bool {
		var r *apiclient.RedirectError
		return errors.As(err, &r) && r.To == to && r.From == "http://server.memory/base/api/v1/namespaces/default/pods"
	}
}

func TestFailedHandshakes(t *testing.T) {
	status := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no watch for you","reason":"Forbidden","details":{"kind":"pods","causes":[`
	causes := func(n int) func(error) bool {
		return func(err error) bool {
			var s *apierrors.StatusError
			return errors.As(err, &s) && apierrors.IsForbidden(err) && len(s.ErrStatus.Details.Causes) == n
		}
	}
	many := strings.Repeat(`{"message":"because"},`, 99) + `{"message":"because"}]},"code":403}`
	again := func(is func(error) bool) func(error) bool {
		return func(err error) bool {
			seconds, _ := apierrors.SuggestsClientDelay(err)
			return is(err) && seconds == 4
		}
	}
	cases := []struct {
		name string
		h    http.HandlerFunc
		is   func(error) bool
		want string
	}{
		{"Status", answer(403, "application/json", status+`]},"code":403}`), apierrors.IsForbidden, "no watch for you"},
		{"large Status", answer(403, "application/json", status+many), causes(100), "no watch for you"},
		{"Status that was cut", answer(403, "application/json", (status + many)[:1024]), apierrors.IsForbidden, "no watch for you"},
		{"Status that breaks off", func(w http.ResponseWriter, r *http.Request) {
			answer(403, "application/json", status)(w, r)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, apierrors.IsForbidden, "no watch for you"},
		{"Status without end", func(w http.ResponseWriter, r *http.Request) {
			answer(403, "application/json", status)(w, r)
			for {
				if _, err := io.WriteString(w, many); err != nil {
					return
				}
			}
		}, apierrors.IsForbidden, "no watch for you"},
		{"empty", answer(403, "", ""), apierrors.IsForbidden, "403 Forbidden"},
		{"unauthorized", answer(401, "text/plain", "who?"), apierrors.IsUnauthorized, "401 Unauthorized: who?"},
		{"not found", answer(404, "text/plain", "404 page not found"), apierrors.IsNotFound, "does not serve this resource (404 page not found)"},
		{"not allowed", answer(405, "", ""), apierrors.IsMethodNotSupported, "405 Method Not Allowed"},
		{"too many", answer(429, "text/plain", "later"), again(apierrors.IsTooManyRequests), "later"},
		{"unavailable", answer(503, "text/html", "<html><title>503 No server</title>"+strings.Repeat("<br>", 1000)), again(apierrors.IsServiceUnavailable), `titled "503 No server"`},
		{"bad gateway", answer(502, "text/html", "<!DOCTYPE html>"), apierrors.IsInternalError, "502 Bad Gateway"},
		{"expired", answer(410, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"old","code":410}`), apierrors.IsResourceExpired, "old"},
		{"gone", answer(410, "", ""), apierrors.IsGone, "410 Gone"},
		{"a redirect elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://joe:pass@elsewhere/login?token=t#f", http.StatusFound)
		}, isRedirect("http://elsewhere/login"), "was redirected to http://elsewhere/login, which the client does not follow"},
		{"a redirect within", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/base/", http.StatusTemporaryRedirect)
		}, isRedirect("http://server.memory/base/"), "which the client does not follow"},
		{"a redirect to nowhere", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", ":%zz")
			w.WriteHeader(http.StatusFound)
		}, isUpgrade(302), "302 Found, whose Location is not a URL"},
		{"no upgrade", answer(200, "application/json", `{"kind":"PodList"}`), isUpgrade(200), "200 OK, which does not switch protocols"},
		{"a stream instead", func(w http.ResponseWriter, r *http.Request) {
			answer(200, "application/json", string(event("6")))(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, isUpgrade(200), "does not switch protocols"},
		{"not modified", answer(304, "", ""), isUpgrade(304), "does not switch protocols"},
		{"an echo", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, fmt.Sprint(r.Header), http.StatusBadRequest)
		}, apierrors.IsBadRequest, "REDACTED"},
		{"a wrong accept", switched("Sec-WebSocket-Accept: AAAA"), isUpgrade(101), "is not a valid WebSocket handshake"},
		{"no accept", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}, isUpgrade(101), "is not a valid WebSocket handshake"},
		{"another protocol", switched("Upgrade: SPDY/3.1"), isUpgrade(101), `switches to the protocol "SPDY/3.1"`},
		{"an extension", switched("Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover"), isUpgrade(101), "which the client did not request"},
		{"a sub-protocol", switched("Sec-WebSocket-Protocol: base64.binary.k8s.io"), isUpgrade(101), `Sec-Websocket-Protocol "base64.binary.k8s.io"`},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n")
				_ = c.Close()
			}
		}, nil, "malformed HTTP response"},
		{"nothing", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, "EOF"},
	}
	for _, c := range cases {
		fixture.Bubble(t, c.name, func(t *testing.T) {
			lw := subject(t, func(c *apiclient.Config) { c.BearerToken = apiclient.NewSecret(secret) }, c.h)
			start := time.Now()
			versions, err := collect(lw, t.Context())
			require.Empty(t, versions)
			require.ErrorContains(t, err, "watch pods: ")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), secret)
			require.NotContains(t, err.Error(), "\n")
			if c.is != nil {
				require.True(t, c.is(err), "%v", err)
			}
			require.Zero(t, time.Since(start))
		})
	}
}

// TestHandshakesThatTakeTooLong has a server that never answers, a connection that is never made, and an error whose
// body never ends.
func TestHandshakesThatTakeTooLong(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	t.Run("no answer", func(t *testing.T) {
		for set, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, 7 * time.Second: 7 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := collect(subject(t, func(c *apiclient.Config) { c.ResponseHeaderTimeout = set }, hang), t.Context())
				var timeout net.Error
				require.ErrorAs(t, err, &timeout)
				require.True(t, timeout.Timeout())
				require.ErrorContains(t, err, "watch pods: websocket: handshake: no answer within "+want.String())
				require.Equal(t, want, time.Since(start))
			})
		}
	})
	fixture.Bubble(t, "no connection", func(t *testing.T) {
		start := time.Now()
		_, err := collect(subject(t, func(c *apiclient.Config) {
			c.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, hang), t.Context())
		require.ErrorContains(t, err, "no answer within 2m0s")
		require.Equal(t, 2*time.Minute, time.Since(start))
	})
	fixture.Bubble(t, "no end", func(t *testing.T) {
		start := time.Now()
		_, err := collect(subject(t, nil, func(w http.ResponseWriter, r *http.Request) {
			answer(http.StatusForbidden, "text/plain", "because I")(w, r)
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}), t.Context())
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "because I")
		require.Equal(t, 10*time.Second, time.Since(start))
	})
	fixture.Bubble(t, "without a time limit", func(t *testing.T) {
		start := time.Now()
		versions := must.Get(collect(subject(t, func(c *apiclient.Config) { c.ResponseHeaderTimeout = -1 }, func(w http.ResponseWriter, r *http.Request) {
			<-time.After(time.Hour)
			oneEvent(w, r)
		}), t.Context()))(t)
		require.Equal(t, []string{"6"}, versions)
		require.Equal(t, time.Hour, time.Since(start))
	})
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTransports(t *testing.T) {
	through := func(t *testing.T, transport http.RoundTripper) *websocket.ListerWatcher[*corev1.Pod] {
		client := newClient(t, apiclient.Config{Host: "http://server.memory", Transport: transport})
		return websocket.Watch(apiclient.NewTyped[*corev1.Pod](client, podResource, ""))
	}
	fixture.Bubble(t, "a transport that wraps another one", func(t *testing.T) {
		inner := &http.Transport{DialContext: listerwatchertest.Serve(t, oneEvent)}
		var sent context.Context
		versions := must.Get(collect(through(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r.Context()
			return inner.RoundTrip(r)
		})), t.Context()))(t)
		require.Equal(t, []string{"6"}, versions)
		require.Error(t, sent.Err(), "the connection is closed")
	})
	fixture.Bubble(t, "a transport that wraps leat's own", func(t *testing.T) {
		var got, hidden http.Header
		lw := subject(t, func(c *apiclient.Config) {
			c.BearerToken = apiclient.NewSecret(secret)
			c.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					hidden = r.Header.Clone()
					return next.RoundTrip(r)
				})
			}
		}, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header
			oneEvent(w, r)
		})
		require.Equal(t, []string{"6"}, must.Get(collect(lw, t.Context()))(t))
		require.Equal(t, "Bearer "+secret, got.Get("Authorization"))
		require.Empty(t, hidden.Get("Authorization"))
		require.Equal(t, "websocket", hidden.Get("Upgrade"))
	})
	t.Run("a transport that keeps the connection", func(t *testing.T) {
		_, err := collect(through(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusSwitchingProtocols, Request: r, Body: http.NoBody}, nil
		})), t.Context())
		require.True(t, isUpgrade(101)(err), "%v", err)
		require.ErrorContains(t, err, "websocket_test.roundTripper does not return the connection")
	})
	fixture.Bubble(t, "a transport whose error is only that of the context", func(t *testing.T) {
		_, err := collect(through(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})), t.Context())
		requireTimeout(t, err)
		require.NotErrorIs(t, err, context.Canceled)
	})
	t.Run("a transport that fails", func(t *testing.T) {
		broken := errors.New("no way there")
		require.ErrorIs(t, must.Err(collect(through(t, roundTripper(func(*http.Request) (*http.Response, error) { return nil, broken })), t.Context())), broken)
	})
}

// rotating is a source whose credentials change with each watch, or after a refusal.
type rotating struct {
	left    []apiclient.Credentials
	keep    bool // until a refusal
	refused []string
}

func (s *rotating) Credentials(context.Context) (apiclient.Credentials, error) {
	c := s.left[0]
	if !s.keep {
		s.left = s.left[1:]
	}
	return c, nil
}

func (s *rotating) Refused(c apiclient.Credentials) {
	s.refused = append(s.refused, c.Token.Reveal())
	s.left = s.left[1:]
}

func token(text string) apiclient.Credentials {
	return apiclient.Credentials{Token: apiclient.NewSecret(text)}
}

func TestEachWatchHasTheNewestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		source := &rotating{left: []apiclient.Credentials{token("first"), token("second")}}
		lw := subject(t, func(c *apiclient.Config) { c.Credentials = source }, func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Get("Authorization"))
			oneEvent(w, r)
		})
		for range 2 {
			require.Equal(t, []string{"6"}, must.Get(collect(lw, t.Context()))(t))
		}
		require.Equal(t, []string{"Bearer first", "Bearer second"}, got)
	})
}

func TestARefusedTokenIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &rotating{keep: true, left: []apiclient.Credentials{token("old"), token("new")}}
		lw := subject(t, func(c *apiclient.Config) { c.Credentials = source }, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "Bearer old" {
				answer(http.StatusUnauthorized, "", "")(w, r)
				return
			}
			oneEvent(w, r)
		})
		require.Equal(t, []string{"6"}, must.Get(collect(lw, t.Context()))(t))
		require.Equal(t, []string{"old"}, source.refused)
	})
}

// identityOf makes a self-signed certificate.
func identityOf(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"server.memory"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	leaf := must.Get(x509.ParseCertificate(der))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestEachWatchHasTheNewestCertificate watches a server that also supports HTTP/2. The client has used HTTP/2 for a
// list.
func TestEachWatchHasTheNewestCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := identityOf(t, "server")
		var got []string
		dial := listerwatchertest.ServeTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.TLS.PeerCertificates[0].Subject.CommonName+" "+r.Proto)
			if r.ProtoMajor == 2 {
				answer(http.StatusOK, "application/json", `{"kind":"PodList","apiVersion":"v1","items":[]}`)(w, r)
				return
			}
			oneEvent(w, r)
		}), &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAnyClientCert})
		first, second := identityOf(t, "first"), identityOf(t, "second")
		lw := websocket.Watch(apiclient.NewTyped[*corev1.Pod](newClient(t, apiclient.Config{
			Host:        "https://server.memory",
			DialContext: dial,
			TLS:         apiclient.TLS{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate[0]})},
			Credentials: &rotating{left: []apiclient.Credentials{{Certificate: &first}, {Certificate: &first}, {Certificate: &second}}},
		}), podResource, ""))
		must.Get(lw.List(t.Context(), api.Options[*corev1.Pod]{}, func(*corev1.Pod) error { return nil }))(t)
		for range 2 {
			require.Equal(t, []string{"6"}, must.Get(collect(lw, t.Context()))(t))
		}
		require.Equal(t, []string{"first HTTP/2.0", "first HTTP/1.1", "second HTTP/1.1"}, got)
	})
}

func TestCertificateErrorsAreExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testserver.New(testserver.Options{TLS: true})
		other := testserver.New(testserver.Options{TLS: true})
		fixture.Start(t, s.Run)
		lw := websocket.Watch(apiclient.NewTyped[*corev1.Pod](newClient(t, apiclient.Config{
			Host:        s.URL(),
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
			TLS:         apiclient.TLS{CAData: other.CA()},
		}), podResource, ""))
		_, err := collect(lw, t.Context())
		var typed *apiclient.CertificateError
		require.ErrorAs(t, err, &typed)
		require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
		require.ErrorContains(t, err, `subject "CN=testserver"`)
	})
}

func TestBasicCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authorization := ""
		lw := subject(t, func(c *apiclient.Config) { c.Username, c.Password = "joe", apiclient.NewSecret(secret) }, func(w http.ResponseWriter, r *http.Request) {
			authorization = r.Header.Get("Authorization")
			oneEvent(w, r)
		})
		must.Get(collect(lw, t.Context()))(t)
		require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("joe:"+secret)), authorization)
	})
}

// TestIdentity checks that a watch over WebSocket is shared only with another one over WebSocket.
func TestIdentity(t *testing.T) {
	client := newClient(t, apiclient.Config{Host: "https://h", TLS: apiclient.TLS{Insecure: true}})
	view := apiclient.NewPartial[*corev1.Pod](client, podResource, "")
	require.Equal(t, websocket.Watch(view).Identity(), websocket.Watch(view).Identity())
	require.NotEqual(t, view.Identity(), websocket.Watch(view).Identity())
	require.Equal(t, view.Collection(), websocket.Watch(view).Collection())
}
