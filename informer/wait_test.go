package informer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWaitPrefersAReachedVersion lets everything that ends a wait happen at once.
func TestWaitPrefersAReachedVersion(t *testing.T) {
	i := New(&unlisted{}, Options[*thing]{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	close(i.stopped)
	w := &waiter{reached: make(chan struct{})}
	require.Error(t, i.await(ctx, w))
	close(w.reached)
	for range 100 {
		require.NoError(t, i.await(ctx, w))
	}
}

func TestCancelledWaitIsRemoved(t *testing.T) {
	i := New(&unlisted{}, Options[*thing]{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, i.WaitFor(ctx, "5"), context.Canceled)
	require.Empty(t, i.waiters)
}
