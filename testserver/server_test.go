package testserver_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
)

func TestListThenWatch(t *testing.T) {
	inBubble(t, testserver.Options{}, func(b *bench) {
		b.ok(http.MethodPost, podsPath, pod("a"))
		l := b.list(podsPath)
		require.Equal(t, []string{"a"}, l.names())
		require.Equal(t, "101", l.Metadata.ResourceVersion)
		w := b.watch(podsPath, "resourceVersion=101")
		defer w.close()
		b.ok(http.MethodPost, podsPath, pod("b"))
		b.ok(http.MethodDelete, podsPath+"/a", nil)
		w.expect("ADDED b@102", "MODIFIED a@103", "DELETED a@104")
	})
}

func TestRealListener(t *testing.T) {
	for _, o := range []testserver.Options{{}, {HTTP2: true}} {
		srv := testserver.New(o)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- srv.Serve(ctx, l) }()
		url := "http://" + l.Addr().String()
		transport := &http.Transport{}
		if o.HTTP2 {
			url = "https://" + l.Addr().String()
			transport.TLSClientConfig = srv.TLSConfig()
			transport.ForceAttemptHTTP2 = true
		}
		client := &http.Client{Transport: transport}
		res, err := client.Get(url + podsPath)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.NoError(t, res.Body.Close())
		cancel()
		require.NoError(t, <-done)
		transport.CloseIdleConnections()
	}
}
