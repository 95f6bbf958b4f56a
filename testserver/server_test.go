package testserver_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
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
		srv := onLoopback(t, o)
		url := "http://" + srv.address
		transport := &http.Transport{}
		if o.HTTP2 {
			url = "https://" + srv.address
			transport.TLSClientConfig = srv.TLSConfig()
			transport.ForceAttemptHTTP2 = true
		}
		client := &http.Client{Transport: transport}
		res, err := client.Get(url + podsPath)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.NoError(t, res.Body.Close())
		transport.CloseIdleConnections()
	}
}

// TestFaultsOnARealListener injects faults on real sockets. A reset must arrive as a reset.
func TestFaultsOnARealListener(t *testing.T) {
	srv := onLoopback(t, testserver.Options{})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func() error {
		res, err := client.Get("http://" + srv.address + podsPath)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return err
	}
	require.NoError(t, get())
	reset := srv.Inject(faults.Fault{Times: 1, Effect: faults.Reset{}})
	require.Error(t, get())
	require.Equal(t, 1, reset.Seen())

	res, err := client.Get("http://" + srv.address + podsPath + "?watch=1")
	require.NoError(t, err)
	defer res.Body.Close()
	outage := srv.Inject(faults.Fault{Effect: faults.Outage{}})
	_, err = io.Copy(io.Discard, res.Body)
	require.Error(t, err)
	require.Error(t, get())
	require.GreaterOrEqual(t, outage.Seen(), 2)
	srv.Heal()
	require.NoError(t, get())
}
