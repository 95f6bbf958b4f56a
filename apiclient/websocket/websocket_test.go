package websocket_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/testserver"
)

const secret = "s3cr3t-t0ken"

var podResource = listerwatchertest.Pods

func newClient(t *testing.T, c apiclient.Config) *apiclient.Client {
	t.Helper()
	client, err := apiclient.New(c)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func over[T api.Object](t *testing.T, s *testserver.Server) api.ListerWatcher[T] {
	return websocket.Watch(apiclient.View[T](newClient(t, apiclient.Config{
		Host:        s.URL(),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
		TLS:         apiclient.TLS{CAData: s.CA()},
	}), podResource, ""))
}

// TestSuite is the conformance suite over WebSocket: what it says about watches over HTTP holds here too.
func TestSuite(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{}, over[*corev1.Pod])
	})
	t.Run("TLS", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{Server: testserver.Options{TLS: true}}, over[*corev1.Pod])
	})
	t.Run("HTTP2 for the rest", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{Server: testserver.Options{HTTP2: true}, SkipUndecodable: true}, over[*metav1.PartialObjectMetadata])
	})
	t.Run("the server's own transport", func(t *testing.T) {
		listerwatchertest.Run(t, listerwatchertest.Options{}, func(t *testing.T, s *testserver.Server) api.ListerWatcher[*corev1.Pod] {
			client := newClient(t, apiclient.Config{Host: s.URL(), Transport: s.Client().Transport})
			return websocket.Watch(apiclient.For[*corev1.Pod](client, podResource, ""))
		})
	})
}

// subject watches what a handler makes of a WebSocket.
func subject(t *testing.T, change func(*apiclient.Config), h http.HandlerFunc) *websocket.ListerWatcher[*corev1.Pod] {
	t.Helper()
	cfg := apiclient.Config{Host: "http://server.memory/base", DialContext: listerwatchertest.Serve(t, h)}
	if change != nil {
		change(&cfg)
	}
	return websocket.Watch(apiclient.For[*corev1.Pod](newClient(t, cfg), podResource, "default"))
}

// upgraded switches protocols and hands the connection to do; then it closes the connection.
func upgraded(do func(c *ws.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		up := ws.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		do(c)
	}
}

func event(version string) []byte {
	return fmt.Appendf(nil, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web","uid":"u","resourceVersion":%q}}}`, version)
}

func collect(lw *websocket.ListerWatcher[*corev1.Pod], ctx context.Context) (versions []string, last error) {
	for e, err := range lw.Watch(ctx, api.Options[*corev1.Pod]{ListOptions: metav1.ListOptions{ResourceVersion: "5"}}) {
		if err != nil {
			last = err
			continue
		}
		versions = append(versions, e.ResourceVersion)
	}
	return versions, last
}

func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *http.Request
		lw := subject(t, func(c *apiclient.Config) { c.BearerToken = apiclient.NewSecret(secret) }, func(w http.ResponseWriter, r *http.Request) {
			got = r
			upgraded(func(c *ws.Conn) { _ = c.WriteMessage(ws.TextMessage, event("6")) })(w, r)
		})
		versions, _ := collect(lw, t.Context())
		require.Equal(t, []string{"6"}, versions)
		require.Equal(t, "/base/api/v1/namespaces/default/pods", got.URL.Path)
		require.Equal(t, "resourceVersion=5&watch=true", got.URL.RawQuery)
		require.Equal(t, "http://server.memory", got.Header.Get("Origin"), "kube-apiserver answers 403 without it")
		require.Empty(t, got.Header.Values("Sec-Websocket-Protocol"), "two are a 400, and none is needed")
		require.Equal(t, "Bearer "+secret, got.Header.Get("Authorization"))
		require.Contains(t, got.Header.Get("User-Agent"), "leat/")
		require.Contains(t, got.Header.Get("Accept"), codec.MediaTypeProtobuf)
	})
}

func TestFailedHandshakes(t *testing.T) {
	status := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no watch for you","reason":"Forbidden","details":{"kind":"pods","causes":[`
	answer := func(code int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Retry-After", "4")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	cases := []struct {
		name string
		h    http.HandlerFunc
		is   func(error) bool
		want string
	}{
		{"Status", answer(403, "application/json", status+`]},"code":403}`), apierrors.IsForbidden, "no watch for you"},
		{"Status that was cut", answer(403, "application/json", status+strings.Repeat(`{"message":"because"},`, 100)+`]},"code":403}`), apierrors.IsForbidden, "no watch for you"},
		{"empty", answer(403, "", ""), apierrors.IsForbidden, "403 Forbidden"},
		{"unauthorized", answer(401, "text/plain", "who?"), apierrors.IsUnauthorized, "401 Unauthorized: who?"},
		{"too many", answer(429, "text/plain", "later"), func(err error) bool {
			seconds, _ := apierrors.SuggestsClientDelay(err)
			return apierrors.IsTooManyRequests(err) && seconds == 4
		}, "later"},
		{"expired", answer(410, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"old","code":410}`), apierrors.IsResourceExpired, "old"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere", http.StatusFound)
		}, isCode(302), "302 Found"},
		{"no upgrade", answer(200, "application/json", `{"kind":"PodList"}`), isCode(200), "200 OK"},
		{"an echo", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, fmt.Sprint(r.Header), http.StatusBadRequest)
		}, apierrors.IsBadRequest, "REDACTED"},
		{"a wrong accept", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
			w.WriteHeader(http.StatusSwitchingProtocols)
		}, nil, "bad handshake"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lw := subject(t, func(c *apiclient.Config) { c.BearerToken = apiclient.NewSecret(secret) }, c.h)
				versions, err := collect(lw, t.Context())
				require.Empty(t, versions)
				require.ErrorContains(t, err, "watch pods: ")
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), secret)
				require.NotContains(t, err.Error(), "\n")
				if c.is != nil {
					require.True(t, c.is(err), "%v", err)
				}
			})
		})
	}
}

func isCode(code int32) func(error) bool {
	return func(err error) bool {
		var s apierrors.APIStatus
		return errors.As(err, &s) && s.Status().Code == code
	}
}

func TestHowAConnectionEnds(t *testing.T) {
	closeWith := func(code int, text string) func(*ws.Conn) {
		return func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(code, text), time.Now().Add(time.Second))
			_, _, _ = c.NextReader() // until the client has closed
		}
	}
	unexpected := func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
	cases := []struct {
		name string
		do   func(*ws.Conn)
		is   func(error) bool
		want string
	}{
		{"normally", closeWith(ws.CloseNormalClosure, ""), nil, ""},
		{"going away", closeWith(ws.CloseGoingAway, "restart"), nil, ""},
		{"without a code", closeWith(ws.CloseNoStatusReceived, ""), nil, ""},
		{"internal error", closeWith(ws.CloseInternalServerErr, "etcd\ndown"), apierrors.IsInternalError, "code 1011: etcd down"},
		{"restart", closeWith(ws.CloseServiceRestart, ""), apierrors.IsServiceUnavailable, "code 1012"},
		{"try again", closeWith(ws.CloseTryAgainLater, "busy"), apierrors.IsServiceUnavailable, "code 1013: busy"},
		{"policy", closeWith(ws.ClosePolicyViolation, "no"), unexpected, "code 1008: no"},
		{"unknown code", closeWith(4000, "odd"), unexpected, "code 4000: odd"},
		{"abruptly", func(c *ws.Conn) { _ = c.WriteMessage(ws.TextMessage, event("6")) }, unexpected, "broke off"},
		{"inside a message", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _ = c.NetConn().Write([]byte{0x81, 100, '{', '"'})
		}, unexpected, "broke off"},
		{"a message that was cut", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, event("7")[:60])
			_ = c.WriteMessage(ws.TextMessage, event("8"))
		}, unexpected, "a message ends inside an event"},
		{"a message that was cut in a string", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, []byte(`{"type":"AD\"DED`))
			_ = c.WriteMessage(ws.TextMessage, event("8"))
		}, unexpected, "a message ends inside an event"},
		{"garbage", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, []byte(`}}`))
		}, func(err error) bool { return errors.Is(err, codec.ErrMalformed) }, ""},
		{"text and binary", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.BinaryMessage, event("7"))
		}, func(err error) bool { return err != nil }, "text and binary messages"},
		{"too large", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _ = c.NetConn().Write([]byte{0x81, 127, 0, 0, 0, 0, 0x40, 0, 0, 0, '{'})
			_, _, _ = c.NextReader()
		}, func(err error) bool { return errors.Is(err, websocket.ErrTooLarge) }, ""},
		{"too large in binary", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _ = c.NetConn().Write([]byte{0x82, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0})
			_, _, _ = c.NextReader()
		}, func(err error) bool { return err != nil }, ""},
		{"nonsense", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _ = c.NetConn().Write([]byte("HTTP/1.1 200 OK\r\n"))
		}, func(err error) bool { return err != nil }, ""},
		{"with an ERROR event", func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_ = c.WriteMessage(ws.TextMessage, []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","reason":"Expired","code":410,"message":"old"}}`))
		}, apierrors.IsResourceExpired, "old"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				versions, err := collect(subject(t, nil, upgraded(c.do)), t.Context())
				require.Equal(t, []string{"6"}, versions)
				if c.is == nil {
					require.NoError(t, err)
					return
				}
				require.True(t, c.is(err), "%v", err)
				require.ErrorContains(t, err, "watch pods: ")
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), "\n")
			})
		})
	}
}

func TestAConnectionThatEndsBeforeAnyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		versions, err := collect(subject(t, nil, upgraded(func(c *ws.Conn) {
			_ = c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(ws.CloseNormalClosure, ""), time.Now().Add(time.Second))
		})), t.Context())
		require.NoError(t, err)
		require.Empty(t, versions)
		_, err = collect(subject(t, nil, upgraded(func(*ws.Conn) {})), t.Context())
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
}

// TestBinaryMessagesAreProtobuf uses messages as kube-apiserver sends them: a WatchEvent without a length before it.
func TestBinaryMessagesAreProtobuf(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u", ResourceVersion: "6"}}
	raw, err := codec.Marshal(pod, codec.MediaTypeProtobuf, podResource)
	require.NoError(t, err)
	e := metav1.WatchEvent{Type: "ADDED"}
	e.Object.Raw = raw
	message, err := e.Marshal()
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		lw := subject(t, nil, upgraded(func(c *ws.Conn) {
			for range 3 {
				_ = c.WriteMessage(ws.BinaryMessage, message)
			}
			_ = c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(ws.CloseNormalClosure, ""), time.Now().Add(time.Second))
		}))
		versions, err := collect(lw, t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"6", "6", "6"}, versions)
	})
	synctest.Test(t, func(t *testing.T) {
		versions, err := collect(subject(t, nil, upgraded(func(c *ws.Conn) {
			_ = c.WriteMessage(ws.BinaryMessage, message[:len(message)-5])
		})), t.Context())
		require.Empty(t, versions)
		require.Error(t, err)
	})
}

func TestPings(t *testing.T) {
	t.Run("a server that answers is waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pings := 0
			start := time.Now()
			versions, err := collect(subject(t, nil, upgraded(func(c *ws.Conn) {
				answer := c.PingHandler()
				c.SetPingHandler(func(data string) error {
					pings++
					return answer(data)
				})
				timer := time.AfterFunc(time.Hour+time.Second, func() {
					_ = c.WriteMessage(ws.TextMessage, event("6"))
					_ = c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(ws.CloseNormalClosure, ""), time.Now().Add(time.Second))
				})
				defer timer.Stop()
				_, _, _ = c.NextReader()
			})), t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"6"}, versions)
			require.Equal(t, 120, pings)
			require.Equal(t, time.Hour+time.Second, time.Since(start))
		})
	})
	t.Run("a server that does not is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan struct{})
			start := time.Now()
			_, err := collect(subject(t, nil, upgraded(func(*ws.Conn) { <-gone })), t.Context())
			close(gone)
			var timeout net.Error
			require.ErrorAs(t, err, &timeout)
			require.True(t, timeout.Timeout())
			require.ErrorContains(t, err, "nothing came for 45s")
			require.Equal(t, 45*time.Second, time.Since(start))
		})
	})
	t.Run("a server's pings are answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pongs := 0
			_, err := collect(subject(t, nil, upgraded(func(c *ws.Conn) {
				c.SetPongHandler(func(data string) error {
					pongs++
					require.Equal(t, "are you there", data)
					return c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(ws.CloseNormalClosure, ""), time.Now().Add(time.Second))
				})
				_ = c.WriteControl(ws.PingMessage, []byte("are you there"), time.Now().Add(time.Second))
				_, _, _ = c.NextReader()
			})), t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, pongs)
		})
	})
}

// TestCancellationLeavesNothing cancels in the handshake, before the first message and inside one.
func TestCancellationLeavesNothing(t *testing.T) {
	hang := func(c *ws.Conn) { _, _, _ = c.NextReader() }
	for name, h := range map[string]http.HandlerFunc{
		"in the handshake":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"before the first message": upgraded(hang),
		"between messages": upgraded(func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			hang(c)
		}),
		"inside a message": upgraded(func(c *ws.Conn) {
			_, _ = c.NetConn().Write([]byte{0x81, 100, '{', '"'})
			hang(c)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				lw := subject(t, nil, h)
				failed := make(chan error)
				go func() {
					_, err := collect(lw, ctx)
					failed <- err
				}()
				synctest.Wait()
				start := time.Now()
				cancel()
				require.ErrorIs(t, <-failed, context.Canceled)
				require.Zero(t, time.Since(start))
			})
		})
	}
}

func TestCertificateErrorsAreExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testserver.New(testserver.Options{TLS: true})
		other := testserver.New(testserver.Options{TLS: true})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		lw := websocket.Watch(apiclient.For[*corev1.Pod](newClient(t, apiclient.Config{
			Host:        s.URL(),
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) },
			TLS:         apiclient.TLS{CAData: other.CA()},
		}), podResource, ""))
		_, err := collect(lw, t.Context())
		var typed *apiclient.CertificateError
		require.ErrorAs(t, err, &typed)
		require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
		require.ErrorContains(t, err, `subject "CN=testserver"`)
		cancel()
		require.NoError(t, <-done)
	})
}

func TestATransportThatDoesNotTellHowToDial(t *testing.T) {
	s := testserver.New(testserver.Options{})
	client := newClient(t, apiclient.Config{Host: s.URL(), Transport: listerwatchertest.Protobuf(s.Client().Transport)})
	_, err := collect(websocket.Watch(apiclient.For[*corev1.Pod](client, podResource, "")), t.Context())
	require.ErrorContains(t, err, "watch pods: websocket: a *listerwatchertest.transcoder does not tell how to dial")
}

// TestBasicCredentialsAndIdentity checks that the handshake carries what requests carry, and that a watch over
// WebSocket is shared only with its like.
func TestBasicCredentialsAndIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authorization := ""
		lw := subject(t, func(c *apiclient.Config) { c.Username, c.Password = "joe", apiclient.NewSecret(secret) }, func(w http.ResponseWriter, r *http.Request) {
			authorization = r.Header.Get("Authorization")
			http.Error(w, "no", http.StatusForbidden)
		})
		_, err := collect(lw, t.Context())
		require.True(t, apierrors.IsForbidden(err))
		require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte("joe:"+secret)), authorization)
	})
	client := newClient(t, apiclient.Config{Host: "https://h", TLS: apiclient.TLS{Insecure: true}})
	view := apiclient.View[*corev1.Pod](client, podResource, "")
	require.Equal(t, websocket.Watch(view).Identity(), websocket.Watch(view).Identity())
	require.NotEqual(t, view.Identity(), websocket.Watch(view).Identity())
	require.Equal(t, podResource, websocket.Watch(view).Resource())
	transport := client.Transport().(*http.Transport)
	require.NotEqual(t, []string{"http/1.1"}, transport.TLSClientConfig.NextProtos, "the client's own configuration is left alone")
	require.EqualValues(t, tls.VersionTLS12, transport.TLSClientConfig.MinVersion)
}
