package informer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAVersionReachedAtTheLastMomentIsReached has everything happen at once that ends a wait.
func TestAVersionReachedAtTheLastMomentIsReached(t *testing.T) {
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

func TestAWaitThatWasGivenUpIsForgotten(t *testing.T) {
	i := New(&unlisted{}, Options[*thing]{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, i.WaitFor(ctx, "5"), context.Canceled)
	require.Empty(t, i.waiters)
}
