package websocket_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	ws "github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/internal/fixture/must"
)

// thrifty is a watch server that needs only its sockets: one goroutine answers and then writes.
func thrifty(b *testing.B, write func(c net.Conn, framed func([]byte) []byte)) string {
	b.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	var conns []net.Conn
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				continue
			}
			if r.Header.Get("Upgrade") == "" {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
				write(c, chunk)
				continue
			}
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+acceptOf(r)+"\r\n\r\n")
			write(c, func(e []byte) []byte { return frame(true, ws.TextMessage, string(e)) })
		}
	})
	b.Cleanup(func() {
		_ = l.Close()
		done.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return "http://" + l.Addr().String()
}

// chunk encodes an event as an HTTP watch does.
func chunk(e []byte) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(e), e) }

// ways runs a benchmark with each way to watch.
func ways(b *testing.B, run func(b *testing.B, watch func(host string) api.ListerWatcher[*corev1.Pod])) {
	source := func(host string) *apiclient.TypedClient[*corev1.Pod] {
		client := must.Get(apiclient.New(apiclient.Config{Host: host}))(b)
		return apiclient.NewTyped[*corev1.Pod](client, podResource, "")
	}
	b.Run("over=HTTP", func(b *testing.B) {
		run(b, func(host string) api.ListerWatcher[*corev1.Pod] { return source(host) })
	})
	b.Run("over=WebSocket", func(b *testing.B) {
		run(b, func(host string) api.ListerWatcher[*corev1.Pod] { return websocket.Watch(source(host)) })
	})
}

// BenchmarkIdleWatches measures the memory and the goroutines of a hundred watches that got one event.
func BenchmarkIdleWatches(b *testing.B) {
	const watches = 100
	ways(b, func(b *testing.B, watch func(string) api.ListerWatcher[*corev1.Pod]) {
		lw := watch(thrifty(b, func(c net.Conn, framed func([]byte) []byte) {
			_, _ = c.Write(framed(event("6")))
		}))
		for b.Loop() {
			before := measure()
			ctx, cancel := context.WithCancel(b.Context())
			var loops, seen sync.WaitGroup
			seen.Add(watches)
			for range watches {
				loops.Go(func() {
					for _, err := range lw.Watch(ctx, api.Options[*corev1.Pod]{}) {
						if err == nil {
							seen.Done()
						}
					}
				})
			}
			seen.Wait()
			after := measure()
			b.ReportMetric(float64(after.heap-before.heap)/watches, "heapB/watch")
			b.ReportMetric(float64(after.stack-before.stack)/watches, "stackB/watch")
			b.ReportMetric(float64(after.goroutines-before.goroutines)/watches, "goroutines/watch")
			cancel()
			loops.Wait()
		}
	})
}

type footprint struct{ heap, stack, goroutines int64 }

func measure() footprint {
	for range 3 { // the second collection empties the pools
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{heap: int64(m.HeapAlloc), stack: int64(m.StackInuse), goroutines: int64(runtime.NumGoroutine())}
}

// BenchmarkWatch measures an event of 3 KB through a loopback socket.
func BenchmarkWatch(b *testing.B) {
	padded := []byte(strings.Replace(string(event("6")), `"web"`, `"web","annotations":{"filler":"`+strings.Repeat("x", 3000)+`"}`, 1))
	ways(b, func(b *testing.B, watch func(string) api.ListerWatcher[*corev1.Pod]) {
		lw := watch(thrifty(b, func(c net.Conn, framed func([]byte) []byte) {
			batch := bytes.Repeat(framed(padded), 20)
			for {
				if _, err := c.Write(batch); err != nil {
					return
				}
			}
		}))
		b.SetBytes(int64(len(padded)))
		b.ReportAllocs()
		left := b.N
		for _, err := range lw.Watch(b.Context(), api.Options[*corev1.Pod]{}) {
			require.NoError(b, err)
			if left--; left <= 0 {
				break
			}
		}
	})
}
