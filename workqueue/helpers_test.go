package workqueue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/workqueue"
)

// bubble runs a test in a bubble, with a queue.
func bubble(t *testing.T, test func(t *testing.T, q *workqueue.Queue[string])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, workqueue.New[string](workqueue.Options{})) })
}

// get takes the next key.
func get[K comparable](t testing.TB, q *workqueue.Queue[K]) workqueue.Work[K] {
	t.Helper()
	return must.Get(q.Get(context.Background()))(t)
}

// drop ends the delay of a key and finishes it. No other key may be ready.
func drop[K comparable](t testing.TB, q *workqueue.Queue[K], key K) {
	t.Helper()
	require.NotZero(t, q.DueAt(key))
	q.Add(key)
	work := get(t, q)
	require.Equal(t, key, work.Key)
	q.Done(key)
}

// getAll takes and finishes n keys.
func getAll[K comparable](t testing.TB, q *workqueue.Queue[K], n int) (keys []K) {
	t.Helper()
	for range n {
		work := get(t, q)
		keys = append(keys, work.Key)
		q.Done(work.Key)
	}
	return keys
}

// requireEmpty checks that no key is ready, delayed or being processed.
func requireEmpty[K comparable](t testing.TB, q *workqueue.Queue[K]) {
	t.Helper()
	s := q.Stats()
	require.Zero(t, q.Len())
	require.Zero(t, s.Depth)
	require.Zero(t, s.Delayed)
	require.Zero(t, s.Processing)
	require.Empty(t, s.ByPriority)
}

func causeOf(version string) workqueue.Cause {
	return workqueue.Cause{Source: "pods", Event: "update", Object: "default/web", Version: version, At: time.Unix(1, 0)}
}
