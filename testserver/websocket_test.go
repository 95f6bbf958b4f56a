package testserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

type brokenListener struct{}

func (brokenListener) Accept() (net.Conn, error) { return nil, errBroken }
func (brokenListener) Close() error              { return nil }
func (brokenListener) Addr() net.Addr            { return &net.TCPAddr{} }

func (b *bench) dialer() *websocket.Dialer {
	return &websocket.Dialer{
		NetDialContext:  func(ctx context.Context, _, _ string) (net.Conn, error) { return b.Dial(ctx) },
		TLSClientConfig: b.TLSConfig(),
	}
}

func (b *bench) dialWebSocket(path string, query ...string) *websocket.Conn {
	b.Helper()
	conn, res, err := b.dialer().DialContext(b.Context(), "ws"+strings.TrimPrefix(b.URL(), "http")+path+queryOf(append(query, "watch=1")...),
		http.Header{"Origin": {b.URL()}})
	require.NoError(b, err)
	require.Equal(b, http.StatusSwitchingProtocols, res.StatusCode)
	b.open = append(b.open, conn)
	return conn
}

// expectMessages reads as many events as there are in want, and compares them.
func expectMessages(t *testing.T, c *websocket.Conn, want ...string) {
	t.Helper()
	for _, w := range want {
		kind, body, err := c.ReadMessage()
		require.NoError(t, err)
		require.Equal(t, websocket.TextMessage, kind)
		var e event
		require.NoError(t, json.Unmarshal(body, &e), "%s", body)
		require.Equal(t, w, e.String())
	}
}

func TestWebSocketWatch(t *testing.T) {
	for _, o := range []testserver.Options{{}, {TLS: true}} {
		inBubble(t, o, func(b *bench) {
			b.fill(1)
			c := b.dialWebSocket(podsPath, "allowWatchBookmarks=1", "timeoutSeconds=5")
			defer c.Close()
			expectMessages(t, c, "ADDED a@101", "BOOKMARK@101 end")
			ponged := false
			c.SetPongHandler(func(text string) error {
				ponged = text == "hello"
				return nil
			})
			require.NoError(b, c.WriteControl(websocket.PingMessage, []byte("hello"), time.Time{}))
			require.NoError(b, c.WriteMessage(websocket.TextMessage, []byte("ignored")))
			require.NoError(b, b.Delete(pods, api.Key{Namespace: "default", Name: "a"}))
			expectMessages(t, c, "DELETED a@102")
			expectMessages(t, c, "BOOKMARK@102")
			_, _, err := c.ReadMessage()
			require.True(b, websocket.IsCloseError(err, websocket.CloseNormalClosure), "%v", err)
			require.True(b, ponged)
		})
	}
}

func TestWebSocketHandshake(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		for _, row := range []struct {
			name   string
			header http.Header
			code   int
		}{
			{"no origin", nil, 403},
			{"origin is no URL", http.Header{"Origin": {"here"}}, 403},
			{"any origin", http.Header{"Origin": {"http://elsewhere.example"}}, 101},
			{"one protocol", http.Header{"Origin": {"http://x"}, "Sec-Websocket-Protocol": {"base64.binary.k8s.io"}}, 101},
			{"two protocols", http.Header{"Origin": {"http://x"}, "Sec-Websocket-Protocol": {"a, b"}}, 400},
		} {
			c, res, err := b.dialer().DialContext(b.Context(), "ws://testserver"+podsPath+"?watch=1", row.header)
			require.Equal(b, row.code, res.StatusCode, row.name)
			require.Equal(b, row.code == 101, err == nil, row.name)
			if err == nil {
				require.Equal(b, row.header.Get("Sec-WebSocket-Protocol"), c.Subprotocol())
				require.NoError(b, c.Close())
				continue
			}
			require.Zero(b, res.ContentLength, row.name)
		}
		// A request that cannot be upgraded is rejected too.
		a := b.do(http.MethodGet, podsPath+"?watch=1", nil, "Connection", "Upgrade", "Upgrade", "websocket", "Origin", "http://x")
		require.Equal(b, 400, a.code)
		// Errors before the start of the stream are plain answers.
		_, res, err := b.dialer().DialContext(b.Context(), "ws://testserver"+podsPath+"?watch=1&timeoutSeconds=x", http.Header{"Origin": {"http://x"}})
		require.Error(b, err)
		require.Equal(b, 400, res.StatusCode)
	})
}

// TestWebSocketTokens sends a token as scripts of web pages do.
func TestWebSocketTokens(t *testing.T) {
	inBubble(t, testserver.Options{Tokens: testserver.Tokens{"a token?>": "ann"}}, func(b *bench) {
		bearer := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("a token?>"))
		for _, row := range []struct {
			protocols string
			code      int
		}{
			{"base64.binary.k8s.io, " + bearer, 101},
			{bearer + ", base64.binary.k8s.io", 101},
			{bearer, 401}, // no other one can be echoed
			{bearer + ", a, b", 400},
			{bearer + "x, a", 401},
			{"base64url.bearer.authorization.k8s.io.!, a", 401},
			{"a", 401},
		} {
			c, res, err := b.dialer().DialContext(b.Context(), "ws://testserver"+podsPath+"?watch=1",
				http.Header{"Origin": {"http://x"}, "Sec-Websocket-Protocol": {row.protocols}})
			require.Equal(b, row.code, res.StatusCode, row.protocols)
			if err == nil {
				require.Equal(b, "base64.binary.k8s.io", c.Subprotocol())
				require.NoError(b, c.Close())
			}
		}
		// Other requests have tokens only in the header Authorization.
		a := b.do(http.MethodGet, podsPath, nil, "Sec-Websocket-Protocol", "a, "+bearer)
		require.Equal(b, 401, a.code)
	})
}

func TestWebSocketFaults(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		c := b.dialWebSocket(podsPath, "resourceVersion=100")
		b.Inject(faults.Fault{Match: faults.Match{Name: "b"}, Times: 1, Effect: faults.CutFrame{At: 20}})
		b.fill(2)
		expectMessages(t, c, "ADDED a@101")
		_, body, err := c.ReadMessage()
		require.NoError(b, err)
		require.Equal(b, `{"type":"ADDED","obj`, string(body))
		_, _, err = c.ReadMessage()
		require.True(b, websocket.IsCloseError(err, websocket.CloseNormalClosure), "%v", err)

		c = b.dialWebSocket(podsPath, "resourceVersion=102")
		b.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
		_, _, err = c.ReadMessage()
		require.ErrorIs(b, err, syscall.ECONNRESET)

		c = b.dialWebSocket(podsPath, "resourceVersion=1")
		expectMessages(t, c, "ERROR 410 Expired")
		require.NoError(b, c.Close())

		// Faults on the bytes of a body do not affect WebSockets.
		cut := b.Inject(faults.Fault{Effect: faults.Cut{After: 1}})
		c = b.dialWebSocket(podsPath, "resourceVersion=101")
		expectMessages(t, c, "ADDED b@102")
		require.Zero(b, cut.Seen())

		// A client that disconnects ends the watch.
		c = b.dialWebSocket(podsPath)
		require.NoError(b, c.Close())
		<-time.After(time.Second)
		require.Len(b, b.Watches(), 1)
	})
}

func TestTLSAndHTTP2InABubble(t *testing.T) {
	for proto, o := range map[string]testserver.Options{"HTTP/1.1": {TLS: true}, "HTTP/2.0": {HTTP2: true}} {
		t.Run(proto[:6], func(t *testing.T) {
			inBubble(t, o, func(b *bench) {
				require.Equal(b, "https://testserver", b.URL())
				require.Contains(b, string(b.CA()), "BEGIN CERTIFICATE")
				b.fill(3)
				require.Len(b, b.list(podsPath).Items, 3)
				w := b.watch(podsPath, "resourceVersion=0")
				require.Equal(b, proto, w.res.Proto)
				w.expect("ADDED a@101", "ADDED b@102", "ADDED c@103")
				b.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
				_, err := w.next()
				require.Error(b, err)
				<-time.After(time.Hour)
				w = b.watch(podsPath, "resourceVersion=103")
				defer w.close()
				b.ok(http.MethodPost, podsPath, pod("d"))
				w.expect("ADDED d@104")
			})
		})
	}
	srv := testserver.New(testserver.Options{})
	require.Nil(t, srv.TLSConfig())
	require.Nil(t, srv.CA())
}
