package websocket_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestPings(t *testing.T) {
	fixture.Bubble(t, "a server that answers keeps its watch", func(t *testing.T) {
		pings := 0
		start := time.Now()
		versions := must.Get(collect(subject(t, nil, upgraded(func(c *ws.Conn) {
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
		})), t.Context()))(t)
		require.Equal(t, []string{"6"}, versions)
		require.Equal(t, 120, pings)
		require.Equal(t, time.Hour+time.Second, time.Since(start))
	})
	fixture.Bubble(t, "a server that does not answer loses its watch", func(t *testing.T) {
		gone := make(chan struct{})
		start := time.Now()
		_, err := collect(subject(t, nil, upgraded(func(*ws.Conn) { <-gone })), t.Context())
		close(gone)
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
		require.ErrorContains(t, err, "no data for 45s")
		require.Equal(t, 45*time.Second, time.Since(start))
	})
	fixture.Bubble(t, "a server's pings are answered", func(t *testing.T) {
		pongs := 0
		must.Get(collect(subject(t, nil, upgraded(func(c *ws.Conn) {
			c.SetPongHandler(func(data string) error {
				pongs++
				require.Equal(t, "are you there", data)
				return c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(ws.CloseNormalClosure, ""), time.Now().Add(time.Second))
			})
			_ = c.WriteControl(ws.PingMessage, []byte("are you there"), time.Now().Add(time.Second))
			_, _, _ = c.NextReader()
		})), t.Context()))(t)
		require.Equal(t, 1, pongs)
	})
}

// TestBusyConnectionsGetNoPings sends events more often than pings are sent.
func TestBusyConnectionsGetNoPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pings := 0
		versions := must.Get(collect(subject(t, nil, upgraded(func(c *ws.Conn) {
			c.SetPingHandler(func(string) error { pings++; return nil })
			ticker := time.NewTicker(29 * time.Second)
			defer ticker.Stop()
			go func() {
				for range 20 {
					<-ticker.C
					_ = c.WriteMessage(ws.TextMessage, event("6"))
				}
				_ = c.WriteControl(ws.CloseMessage, ws.FormatCloseMessage(ws.CloseNormalClosure, ""), time.Now().Add(time.Second))
			}()
			_, _, _ = c.NextReader()
		})), t.Context()))(t)
		require.Len(t, versions, 20)
		require.Zero(t, pings)
	})
}

// TestSilence ends a watch 45 seconds after the last byte, whatever it was.
func TestSilence(t *testing.T) {
	cases := map[string]struct {
		do   func(c *ws.Conn, mute func())
		want time.Duration
	}{
		"after an event": {func(c *ws.Conn, mute func()) {
			<-time.After(50 * time.Second)
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			mute()
		}, 95 * time.Second},
		"after the answer to a ping": {func(_ *ws.Conn, mute func()) {
			<-time.After(31 * time.Second)
			mute()
		}, 75 * time.Second},
		"inside a message that is slow in coming": {func(c *ws.Conn, mute func()) {
			mute()
			for _, b := range frame(true, ws.TextMessage, string(event("6")))[:50] {
				<-time.After(40 * time.Second)
				_, _ = c.NetConn().Write([]byte{b})
			}
		}, 50*40*time.Second + 45*time.Second},
	}
	for name, c := range cases {
		fixture.Bubble(t, name, func(t *testing.T) {
			start := time.Now()
			_, err := collect(subject(t, nil, upgraded(func(conn *ws.Conn) {
				var muted atomic.Bool
				answer := conn.PingHandler()
				conn.SetPingHandler(func(data string) error {
					if muted.Load() {
						return nil
					}
					return answer(data)
				})
				go c.do(conn, func() { muted.Store(true) })
				_, _, _ = conn.NextReader() // until the client has closed
			})), t.Context())
			requireTimeout(t, err)
			require.ErrorContains(t, err, "no data for 45s, and no answer to a ping")
			require.Equal(t, c.want, time.Since(start))
		})
	}
}

func requireTimeout(t *testing.T, err error) {
	t.Helper()
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
}

// TestAServerThatOnlySends reads neither pings nor answers to its own pings.
func TestAServerThatOnlySends(t *testing.T) {
	for name, say := range map[string][]byte{"nothing": nil, "a ping": frame(true, ws.PingMessage, "")} {
		fixture.Bubble(t, name, func(t *testing.T) {
			gone := make(chan struct{})
			start := time.Now()
			_, err := collect(subject(t, nil, upgraded(func(c *ws.Conn) {
				_, _ = c.NetConn().Write(say)
				<-gone
			})), t.Context())
			close(gone)
			requireTimeout(t, err)
			require.Equal(t, 45*time.Second, time.Since(start))
		})
	}
}

// TestAServerThatHasGoneBehindAProxy sends two bookmarks, and then only answers pings, as a proxy does.
func TestAServerThatHasGoneBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := subject(t, nil, upgraded(func(c *ws.Conn) {
			for range 2 {
				_ = c.WriteMessage(ws.TextMessage, []byte(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"6"}}}`))
			}
			_, _, _ = c.NextReader()
		}))
		start := time.Now()
		var last error
		for _, err := range lw.Watch(t.Context(), api.Options[*corev1.Pod]{ListOptions: metav1.ListOptions{AllowWatchBookmarks: true}}) {
			last = err
		}
		require.ErrorIs(t, last, api.ErrOverdue)
		require.Equal(t, 3*time.Minute, time.Since(start))
	})
}

// TestASlowReaderIsNotSilence has a reader that takes longer for an event than the limit of silence.
func TestASlowReaderIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := subject(t, nil, upgraded(func(c *ws.Conn) {
			for _, version := range []string{"6", "7", "8"} {
				_ = c.WriteMessage(ws.TextMessage, event(version))
			}
			goodbye(c)
		}))
		var versions []string
		for e, err := range lw.Watch(t.Context(), api.Options[*corev1.Pod]{}) {
			require.NoError(t, err)
			versions = append(versions, e.ResourceVersion)
			<-time.After(5 * time.Minute)
		}
		require.Equal(t, []string{"6", "7", "8"}, versions)
	})
}

// TestAWatchHasNoGoroutine counts the goroutines of fifty idle watches: only the caller's loops.
func TestAWatchHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		lw := subject(t, nil, upgraded(func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			_, _, _ = c.NextReader()
		}))
		var loops sync.WaitGroup
		for range 50 {
			loops.Go(func() { _, _ = collect(lw, ctx) })
		}
		<-time.After(time.Hour)
		synctest.Wait()
		stacks := make([]byte, 1<<22)
		stacks = stacks[:runtime.Stack(stacks, true)]
		require.Equal(t, 50, bytes.Count(stacks, []byte("websocket.(*wire).Read(")))
		require.Zero(t, bytes.Count(stacks, []byte("websocket.(*pinger)")))
		require.Zero(t, bytes.Count(stacks, []byte("net/http.(*persistConn)")))
		cancel()
		loops.Wait()
	})
}

// TestCancellationLeavesNothing cancels during the handshake, before the first message and inside a message.
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
		"while a ping cannot be sent": upgraded(func(c *ws.Conn) {
			_ = c.WriteMessage(ws.TextMessage, event("6"))
			<-time.After(31 * time.Second)
		}),
	} {
		fixture.Bubble(t, name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			lw := subject(t, nil, h)
			failed := make(chan error)
			go func() {
				_, err := collect(lw, ctx)
				failed <- err
			}()
			if name == "while a ping cannot be sent" {
				<-time.After(30 * time.Second)
			}
			synctest.Wait()
			start := time.Now()
			cancel()
			require.ErrorIs(t, <-failed, context.Canceled)
			require.Zero(t, time.Since(start))
			<-time.After(time.Minute) // time for the server to notice
		})
	}
}
