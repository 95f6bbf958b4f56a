package apiclient_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
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

// TestManyWatchesOpenFewConnections starts 300 watches at once. A server of Go takes 250 streams on a connection.
func TestManyWatchesOpenFewConnections(t *testing.T) {
	const watches = 300
	for _, http2 := range []bool{true, false} {
		var accepted atomic.Int32
		var begun sync.WaitGroup
		begun.Add(watches)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			flushed(w, jsonType, "")
			begun.Done()
			<-r.Context().Done()
		}))
		s.EnableHTTP2 = http2
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				accepted.Add(1)
			}
		}
		s.StartTLS()
		cfg := apiclient.Config{Host: s.URL}
		cfg.TLS.Insecure = true
		r := apiclient.NewPartial[*pod](newClient(t, cfg), podResource, "")
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		for range watches {
			watching.Go(func() {
				for ctx.Err() == nil { // again if the handshake takes too long on a busy machine
					for range r.Watch(ctx, api.Options[*pod]{}) {
					}
				}
			})
		}
		begun.Wait() // over HTTP/1.1 too: there, requests do not wait for each other
		if http2 {
			require.LessOrEqual(t, accepted.Load(), int32(3))
		} else {
			require.GreaterOrEqual(t, accepted.Load(), int32(watches))
		}
		cancel()
		watching.Wait()
		s.Close()
	}
}

// TestARequestDoesNotWaitForAnUnreachableServer has a first connection that never opens.
func TestARequestDoesNotWaitForAnUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		dials := 0
		cfg := apiclient.Config{Host: "https://h", DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if dials++; dials == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, refused
		}}
		c := newClient(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		get := func(ctx context.Context) error {
			return must.Err(apiclient.NewPartial[*pod](c, podResource, "").Get(ctx, web, metav1.GetOptions{}))
		}
		var first sync.WaitGroup
		first.Go(func() { _ = get(ctx) })
		synctest.Wait()
		start := time.Now()
		require.ErrorIs(t, get(t.Context()), refused)
		require.Equal(t, time.Second, time.Since(start))
		waiting, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		require.ErrorIs(t, get(waiting), context.DeadlineExceeded)
		cancel()
		first.Wait()
		require.ErrorIs(t, get(t.Context()), refused)
		require.Equal(t, time.Second+time.Millisecond, time.Since(start), "nobody opens a connection")
	})
}
