package shard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/scale/shard"
)

// requireDivided waits until the replicas hold their target, which together has all hashes.
func requireDivided(t *testing.T, replicas ...*replica) {
	t.Helper()
	var all hashrange.Set
	for i, r := range replicas {
		s := r.Status()
		require.True(t, s.Held.Equal(s.Target), "replica %d holds %s and not %s: %v", i, s.Held, s.Target, s.Err)
		require.True(t, s.Releasing.Empty())
		require.True(t, all.Intersect(s.Held).Empty())
		require.InEpsilon(t, 1/float64(len(replicas)), s.Held.Share(), 1e-9)
		require.Equal(t, replicas[0].Status().Cut, s.Cut)
		require.Len(t, s.Members, len(replicas))
		all = all.Union(s.Held)
	}
	require.True(t, all.Equal(hashrange.All()))
}

func TestJoinAndLeave(t *testing.T) {
	bubble(t, func(t *testing.T, f *fixture.Fixture) {
		var replicas []*replica
		for i := range 5 {
			replicas = append(replicas, join(f, shard.Options{Identity: fmt.Sprint("replica-", i)}, nil))
			<-time.After(10 * time.Second)
			requireDivided(t, replicas...)
		}
		replicas[2].end()
		replicas = append(replicas[:2], replicas[3:]...)
		<-time.After(10 * time.Second)
		requireDivided(t, replicas...)
		all, err := f.Server.List(leases, "default")
		require.NoError(t, err)
		require.Len(t, all, 4)
	})
}
