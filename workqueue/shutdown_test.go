package workqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

// drainOf starts a drain and returns when it blocks.
func drainOf(ctx context.Context, q *workqueue.Queue[string]) <-chan error {
	drained := make(chan error, 1)
	go func() { drained <- q.ShutDownWithDrain(ctx) }()
	synctest.Wait()
	return drained
}

func requireWaits(t *testing.T, drained <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-drained:
		t.Fatalf("the drain ended early: %v", err)
	default:
	}
}

func TestDrain(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, q *workqueue.Queue[string]){
		"ends at once if the queue is empty": func(t *testing.T, q *workqueue.Queue[string]) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.NoError(t, q.ShutDownWithDrain(ended))
			require.NoError(t, q.ShutDownWithDrain(t.Context()))
		},
		"ends with its context": func(t *testing.T, q *workqueue.Queue[string]) {
			q.Add("a")
			q.Add("b")
			q.Add("c")
			get(t, q)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			err := q.ShutDownWithDrain(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Minute, time.Since(start))
			var left *workqueue.DrainError
			require.True(t, errors.As(err, &left))
			require.Equal(t, workqueue.DrainError{Ready: 2, Processing: 1, Err: context.DeadlineExceeded}, *left)
			require.EqualError(t, err, "workqueue: drain ended with 2 keys ready and 1 being processed: context deadline exceeded")
		},
		"ends with ShutDown": func(t *testing.T, q *workqueue.Queue[string]) {
			q.Add("a")
			get(t, q)
			drained := drainOf(t.Context(), q)
			requireWaits(t, drained)
			q.ShutDown()
			require.ErrorIs(t, <-drained, workqueue.ErrShutDown)
			q.Done("a")
		},
		"is not part of ShutDown": func(t *testing.T, q *workqueue.Queue[string]) {
			q.Add("a")
			q.Add("b")
			get(t, q)
			q.ShutDown() // a drain would block the test
			require.Equal(t, 1, q.Stats().Processing)
			require.Equal(t, 1, q.Len())
			q.Done("a")
		},
		"may follow ShutDown": func(t *testing.T, q *workqueue.Queue[string]) {
			q.Add("a")
			q.ShutDown()
			drained := drainOf(t.Context(), q)
			requireWaits(t, drained)
			getAll(t, q, 1)
			require.NoError(t, <-drained)
		},
		"may have many callers": func(t *testing.T, q *workqueue.Queue[string]) {
			q.Add("a")
			ctx, cancel := context.WithCancel(t.Context())
			first, second, third := drainOf(t.Context(), q), drainOf(t.Context(), q), drainOf(ctx, q)
			cancel()
			require.ErrorIs(t, <-third, context.Canceled)
			requireWaits(t, first)
			getAll(t, q, 1)
			require.NoError(t, <-first)
			require.NoError(t, <-second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *workqueue.Queue[string]) {
				test(t, q)
				q.Add("late")
				q.AddAfter("late", time.Second)
				require.Zero(t, q.Stats().Delayed, "a queue that was shut down ignores adds")
				q.ShutDown() // does nothing more, however the drain ended
				q.ShutDown()
			})
		})
	}
}

// A drain whose context ends just as the queue becomes empty succeeds if no key is left when it looks.
func TestDrainThatEndsWithNothingLeft(t *testing.T) {
	for range 100 {
		bubble(t, func(t *testing.T, q *workqueue.Queue[string]) {
			q.Add("a")
			get(t, q)
			ctx, cancel := context.WithCancel(t.Context())
			drained := drainOf(ctx, q)
			cancel()
			q.Done("a")
			if err := <-drained; err != nil {
				require.Equal(t, &workqueue.DrainError{Processing: 1, Err: context.Canceled}, err)
			}
		})
	}
}

func TestShutDownLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, start := workqueue.New[string](workqueue.Options{}), time.Now()
		q.AddAfter("a", time.Hour)
		q.ShutDown()
		requireEmpty(t, q)
		require.False(t, q.StopTimer(), "a timer would keep the queue in memory for an hour")
		require.Zero(t, time.Since(start)) // the bubble ends here and fails if a goroutine is left
	})
}

func TestShuttingDown(t *testing.T) {
	q := workqueue.New[string](workqueue.Options{})
	require.False(t, q.ShuttingDown())
	q.ShutDown()
	require.True(t, q.ShuttingDown())
	q = workqueue.New[string](workqueue.Options{})
	require.NoError(t, q.ShutDownWithDrain(t.Context()))
	require.True(t, q.ShuttingDown())
}
