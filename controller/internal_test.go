package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/workqueue"
)

// TestCrashOnPanic calls the function that a worker calls, because a panic in a worker would end the process.
func TestCrashOnPanic(t *testing.T) {
	for _, crash := range []bool{false, true} {
		c := New("test", Func[string](func(context.Context, string) (Result, error) { panic("a bug") }), Options{Tuning: Tuning{CrashOnPanic: crash}})
		c.queue.Add("a")
		w, err := c.queue.Get(t.Context())
		require.NoError(t, err)
		work := func() { c.process(t.Context(), w, new(atomic.Pointer[attempt[string]])) }
		if crash {
			require.PanicsWithValue(t, "a bug", work)
		} else {
			require.NotPanics(t, work)
		}
	}
}

func TestHistoryUsesItsRoomAgain(t *testing.T) {
	c := New("test", Func[int](func(context.Context, int) (Result, error) { return Result{}, nil }), Options{Tuning: Tuning{History: 2}})
	note := func(key int, err error) {
		c.history.note(c.newAttempt(workqueue.Work[int]{Key: key, Causes: []workqueue.Cause{{Source: "pods"}}}), Succeeded, Result{}, time.Time{}, err)
	}
	for range pastReconciles {
		note(1, errors.New("no luck"))
		note(2, errors.New("no luck"))
	}
	page := c.history.keys[1]
	note(3, nil)
	require.Same(t, page, c.history.keys[3])
	for i := range page.past {
		if i == page.count%pastReconciles {
			continue // it is the entry of the new key
		}
		require.Equal(t, make([]workqueue.Cause, 1), page.past[i].work.Causes, "the page keeps no string of the old key alive")
		require.Empty(t, page.past[i].err)
	}

	a := c.newAttempt(workqueue.Work[int]{Key: 3, Causes: []workqueue.Cause{{Source: "pods"}}})
	require.Zero(t, testing.AllocsPerRun(100, func() { c.history.note(a, Succeeded, Result{}, time.Time{}, nil) }))
	b := c.newAttempt(workqueue.Work[int]{Key: 2, Causes: []workqueue.Cause{{Source: "pods"}}})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		a.work.Key, b.work.Key = a.work.Key+2, b.work.Key+2
		c.history.note(a, Succeeded, Result{}, time.Time{}, nil)
		c.history.note(b, Succeeded, Result{}, time.Time{}, nil)
	}), "no allocation for other keys either")
	require.Len(t, c.history.keys, 2)
}
