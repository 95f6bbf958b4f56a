package accessreview_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/manager/accessreview"
)

// TestLongPathsAreNotKept sends requests without a valid token, whose paths are long. Anybody can send them.
func TestLongPathsAreNotKept(t *testing.T) {
	const requests, length = 200, 100_000
	f, _ := newFilter(t, &server{}, accessreview.Options{})
	before := heap()
	for i := range requests {
		require.Equal(t, http.StatusUnauthorized, get(f, http.MethodGet, "/"+strings.Repeat("a", length+i), "Bearer unknown"))
	}
	require.Less(t, heap()-before, int64(requests*length/10))
	runtime.KeepAlive(f)
}

// TestLogsShortenPaths sends a long path while the API server does not answer.
func TestLogsShortenPaths(t *testing.T) {
	f, logs := newFilter(t, &server{broken: "TokenReview"}, accessreview.Options{})
	require.Equal(t, http.StatusServiceUnavailable, get(f, http.MethodGet, "/"+strings.Repeat("a", 10_000), "Bearer scraper"))
	require.Len(t, logs.All(), 1)
	require.Less(t, len(logs.All()[0].ContextMap()["path"].(string)), 1000)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
