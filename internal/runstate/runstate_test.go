package runstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/runstate"
)

func TestIsClosed(t *testing.T) {
	c := make(chan struct{})
	require.False(t, runstate.IsClosed(c))
	close(c)
	require.True(t, runstate.IsClosed(c))
	require.False(t, runstate.IsClosed(nil), "a channel that nobody will close")
}

func TestStatesAreOrdered(t *testing.T) {
	require.IsIncreasing(t, []runstate.State{runstate.Created, runstate.Running, runstate.Ending, runstate.Ended})
}
