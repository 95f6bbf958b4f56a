package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCrashOnPanic calls what a worker calls, since the process would end with a worker.
func TestCrashOnPanic(t *testing.T) {
	for _, crash := range []bool{false, true} {
		c := New("test", Func[string](func(context.Context, string) (Result, error) { panic("a bug") }), Options{CrashOnPanic: crash})
		c.queue.Add("a")
		w, err := c.queue.Get(t.Context())
		require.NoError(t, err)
		work := func() { c.process(t.Context(), w, &c.running[0]) }
		if crash {
			require.PanicsWithValue(t, "a bug", work)
		} else {
			require.NotPanics(t, work)
		}
	}
}
