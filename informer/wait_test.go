package informer

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/runstate"
)

// TestWaitPrefersAReachedVersion lets everything that ends a wait happen at once.
func TestWaitPrefersAReachedVersion(t *testing.T) {
	i := pipelineOf(New(&unlisted{}, Options[*thing]{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	close(i.events.stopped)
	w := &waiter{done: make(chan struct{})}
	require.Error(t, i.await(ctx, w))
	close(w.done)
	for range 100 {
		require.NoError(t, i.await(ctx, w))
	}
}

// TestCancelledWaitIsRemoved has another wait, which must stay until its version is reached.
func TestCancelledWaitIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(&unlisted{}, Options[*thing]{})
		waited := make(chan error, 1)
		go func() { waited <- i.WaitFor(t.Context(), "9") }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, i.WaitFor(ctx, "5"), context.Canceled)
		require.Len(t, pipelineOf(i).waiters, 1)
		pipelineOf(i).handleDeltas(batchWith(batchOf(changesOf{added(one(1))})).first()) // leads to version 9
		require.NoError(t, <-waited)
	})
}

// TestBatchesBeforeAWaiterLeaves handles a second batch before a waiter has noticed the first one.
func TestBatchesBeforeAWaiterLeaves(t *testing.T) {
	p := pipelineOf(New(&unlisted{}, Options[*thing]{}))
	w := &waiter{func() bool { return p.indexer.ResourceVersion() == "9" }, make(chan struct{})}
	p.waiters = []*waiter{w}
	for range 2 {
		p.handleDeltas(batchOf(changesOf{updated(one(1), one(1))}))
	}
	require.True(t, runstate.IsClosed(w.done))
}
