package runner

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/testserver"
)

const testAgents = 40

// failing fails joins.
type failing struct {
	next http.RoundTripper
	fail func(attempt int) bool

	mu       sync.Mutex // guards the field below
	attempts map[string]int
}

func (f *failing) RoundTrip(q *http.Request) (*http.Response, error) {
	if query := q.URL.RawQuery; strings.Contains(query, "sendInitialEvents") {
		f.mu.Lock()
		f.attempts[query]++
		attempt := f.attempts[query]
		f.mu.Unlock()
		if f.fail(attempt) {
			return nil, io.ErrUnexpectedEOF
		}
	}
	return f.next.RoundTrip(q)
}

func fleetServer(t *testing.T, fail func(attempt int) bool) *apiServer {
	t.Helper()
	server := testserver.New(testserver.Options{})
	fixture.Start(t, server.Run)
	f := &failing{next: server.Client().Transport, fail: fail, attempts: map[string]int{}}
	client := func() *http.Client { return &http.Client{Transport: f} }
	return &apiServer{url: server.URL(), client: client(), another: client, processes: []int{os.Getpid()}}
}

// Each agent fails twice before it joins, at first and in the restart.
func TestAgentsJoinAgain(t *testing.T) {
	s := fleetServer(t, func(attempt int) bool { return attempt%3 != 0 })
	m, err := fleetOf(testAgents)(t.Context(), s)
	require.NoError(t, err)
	for _, column := range fleetRow(nil).Columns {
		require.Contains(t, m, column)
	}
	require.Positive(t, m["restart cpu ms"])
	require.Positive(t, m["restart s"])
}

func TestAStepThatFailsHasNoFigure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := fleetServer(t, func(attempt int) bool {
		if attempt > 1 {
			cancel() // so that the test need not wait for all attempts
		}
		return attempt > 1
	})
	m, err := fleetOf(8)(ctx, s)
	require.Error(t, err)
	require.Contains(t, m, "join cpu ms")
	require.NotContains(t, m, "restart cpu ms")
	require.NotContains(t, m, "restart s")
}
