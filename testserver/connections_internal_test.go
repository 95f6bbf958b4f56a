package testserver

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// TestConnectionsAreForgotten ends requests, WebSockets and failed handshakes. The server keeps none of their
// connections.
func TestConnectionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		count := func() int {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.conns)
		}
		client := s.Client()
		dialer := websocket.Dialer{NetDialContext: client.Transport.(*http.Transport).DialContext}
		url := "ws" + s.URL()[len("http"):] + "/api/v1/pods?watch=1"
		for range 3 {
			c, _, err := dialer.DialContext(ctx, url, http.Header{"Origin": {s.URL()}})
			require.NoError(t, err)
			require.Equal(t, 1, count(), "an open WebSocket can be disconnected")
			require.NoError(t, c.Close())
			require.Zero(t, count())
			_, res, err := dialer.DialContext(ctx, url, nil) // kube-apiserver wants an Origin
			require.ErrorIs(t, err, websocket.ErrBadHandshake)
			require.NoError(t, res.Body.Close())
			require.Zero(t, count())
			res, err = client.Get(s.URL() + "/version")
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, 1, count(), "the connection waits for the next request")
			client.CloseIdleConnections()
			require.Zero(t, count())
		}
		stop()
		require.NoError(t, <-ended)
	})
}
