package testserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

// TestTooManyRequests sends requests while another one is in progress: a creation whose body does not end.
func TestTooManyRequests(t *testing.T) {
	for _, queue := range []bool{false, true} {
		inBubble(t, testserver.Options{InFlight: testserver.InFlight{Reads: 1, Writes: 1, Queue: queue}}, func(b *bench) {
			send := func(method, path string, body io.Reader) *http.Response {
				request := must.Get(http.NewRequestWithContext(b.Context(), method, b.URL()+path, body))(b.T)
				response := must.Get(b.Client().Do(request))(b.T)
				b.Cleanup(func() { _ = response.Body.Close() })
				return response
			}
			var held []*io.PipeWriter
			for range map[bool]int{false: 1, true: 2}[queue] {
				body, end := io.Pipe()
				held = append(held, end)
				go send(http.MethodPost, mapsPath, body)
			}
			synctest.Wait()
			begin := time.Now()
			refused := send(http.MethodPost, mapsPath, strings.NewReader("{}"))
			require.Equal(b, "Too many requests, please try again later.\n", string(must.Get(io.ReadAll(refused.Body))(b.T)))
			require.Equal(b, []any{429, "1"}, []any{refused.StatusCode, refused.Header.Get("Retry-After")})
			require.Equal(b, map[bool]time.Duration{false: 0, true: 15 * time.Second}[queue], time.Since(begin))
			require.Equal(b, 200, send(http.MethodGet, mapsPath+"?watch=1&timeoutSeconds=1", nil).StatusCode)
			require.Equal(b, map[bool]int{false: 200, true: 429}[queue], send(http.MethodGet, mapsPath, nil).StatusCode)
			for _, end := range held {
				_ = end.Close()
			}
			synctest.Wait()
			require.Equal(b, 422, send(http.MethodPost, mapsPath, strings.NewReader("{}")).StatusCode)
		})
	}
}
