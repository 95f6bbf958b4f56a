package controller

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/stretchr/testify/require"
)

// TestCrashOnPanic calls the function that a worker calls, because a panic in a worker would end the process.
func TestCrashOnPanic(t *testing.T) {
	for _, crash := range []bool{false, true} {
		c := New("test", Func[string](func(context.Context, string) (Result, error) { panic("a bug") }), Options{Tuning: Tuning{CrashOnPanic: crash}})
		c.queue.Add("a")
		w := must.Get(c.queue.Get(t.Context()))(t)
		work := func() { c.process(t.Context(), w, new(atomic.Pointer[attempt[string]]), new(ended[string])) }
		if crash {
			require.PanicsWithValue(t, "a bug", work)
		} else {
			require.NotPanics(t, work)
		}
	}
}
