package testserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
)

// running starts a server outside of a bubble.
func running(b *testing.B, o testserver.Options) *testserver.Server {
	srv := testserver.New(o)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-done)
	})
	return srv
}

func populate(b *testing.B, srv *testserver.Server, n int) {
	text := strings.Repeat("x", 1<<10)
	for i := range n {
		_, err := srv.Create(configMaps, configMap(fmt.Sprintf("m%06d", i), "text", text))
		require.NoError(b, err)
	}
}

func BenchmarkCreate(b *testing.B) {
	srv := testserver.New(testserver.Options{})
	m := doc{"metadata": doc{"generateName": "m-", "namespace": "default"}, "data": doc{"text": strings.Repeat("x", 1<<10)}}
	b.ReportAllocs()
	for b.Loop() {
		_, err := srv.Create(configMaps, m)
		require.NoError(b, err)
	}
}

// BenchmarkList lists a collection that does not change, and one that changes before each list.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		for _, name := range []string{"same", "changed"} {
			b.Run(fmt.Sprintf("objects=%d/%s", n, name), func(b *testing.B) {
				srv := running(b, testserver.Options{})
				populate(b, srv, n)
				client := srv.Client()
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if name == "changed" {
						_, err := srv.Update(configMaps, configMap("m000000", "text", fmt.Sprint(i)))
						require.NoError(b, err)
					}
					res, err := client.Get(srv.URL() + mapsPath)
					require.NoError(b, err)
					size, err := io.Copy(io.Discard, res.Body)
					require.NoError(b, err)
					b.SetBytes(size)
					require.NoError(b, res.Body.Close())
				}
			})
		}
	}
}

// BenchmarkWatch measures one update, from the write until every watch has received it.
func BenchmarkWatch(b *testing.B) {
	for _, watches := range []int{1, 100, 1_000} {
		b.Run(fmt.Sprintf("watches=%d", watches), func(b *testing.B) {
			srv := running(b, testserver.Options{})
			client := srv.Client()
			var streams []*bufio.Reader
			for range watches {
				res, err := client.Do(mustRequest(b, srv.URL()+mapsPath+"?watch=1&resourceVersion=100"))
				require.NoError(b, err)
				defer res.Body.Close()
				streams = append(streams, bufio.NewReader(res.Body))
			}
			m := doc{"metadata": doc{"generateName": "m-", "namespace": "default"}, "data": doc{"text": strings.Repeat("x", 1<<10)}}
			for b.Loop() {
				_, err := srv.Create(configMaps, m)
				require.NoError(b, err)
				for _, s := range streams {
					_, err := s.ReadSlice('\n')
					require.NoError(b, err)
				}
			}
		})
	}
}

func mustRequest(b *testing.B, url string) *http.Request {
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	require.NoError(b, err)
	return r
}
