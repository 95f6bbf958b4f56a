package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/testserver"
)

// TestEachFollowsTheOther has a leader of one library and a waiting replica of the other. The leader ends in order and
// releases the lease, or dies, and the lease must expire.
func TestEachFollowsTheOther(t *testing.T) {
	for _, leatLeads := range []bool{true, false} {
		for _, dies := range []bool{true, false} {
			t.Run(fmt.Sprintf("leatLeads=%v/dies=%v", leatLeads, dies), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *testserver.Server) { follow(t, s, leatLeads, dies) })
			})
		}
	}
}

func follow(t *testing.T, s *testserver.Server, leatLeads, dies bool) {
	first := campaign(t, s, "first", leatLeads)
	require.True(t, first.leads())
	second := campaign(t, s, "second", !leatLeads)
	<-time.After(10 * leaseDuration)
	require.False(t, second.leads(), "two lead at once")
	for _, c := range []*candidate{first, second} {
		require.Equal(t, "first", c.leader(), "as %s sees it", c.identity)
	}
	renewed := lease(t, s).RenewTime
	left := time.Now()
	if dies {
		first.die()
	} else {
		first.end()
		require.Empty(t, *lease(t, s).HolderIdentity, "it was not released")
	}
	limit := longestRetry
	if dies {
		limit += leaseDuration
		if leatLeads { // client-go keeps its own interval after it has seen the lease for the last time
			limit += longestRetry
		}
	}
	<-time.After(limit + time.Second)
	began, _ := second.led()
	require.False(t, began.IsZero(), "nobody follows")
	require.LessOrEqual(t, began.Sub(left), limit)
	if dies {
		require.GreaterOrEqual(t, began.Sub(renewed.Time), leaseDuration, "it did not wait for the lease to run out")
	}
	now := lease(t, s)
	require.Equal(t, "second", *now.HolderIdentity)
	require.Equal(t, int32(leaseDuration/time.Second), *now.LeaseDurationSeconds)
	require.Positive(t, *now.LeaseTransitions)
	require.WithinDuration(t, time.Now(), now.RenewTime.Time, retryPeriod+time.Second)
	second.end()
	require.Empty(t, *lease(t, s).HolderIdentity)
}

// TestNeverTwoOfEither starts, ends, kills and cuts off three replicas of each library for most of an hour, and checks
// who led when.
func TestNeverTwoOfEither(t *testing.T) {
	bubble(t, func(t *testing.T, s *testserver.Server) {
		var all, running []*candidate
		start := func() *candidate {
			c := campaign(t, s, fmt.Sprintf("candidate-%d", len(all)), len(all)%2 == 0)
			all = append(all, c)
			return c
		}
		for range 6 {
			running = append(running, start())
		}
		for round := range 120 {
			<-time.After(time.Duration(5+round*7%40) * time.Second)
			at := round % len(running)
			for i, c := range running {
				if round%3 != 0 && c.leads() { // usually the leader is stopped
					at = i
				}
			}
			switch c := running[at]; round % 4 {
			case 0, 1:
				c.end()
			case 2:
				c.die()
			case 3:
				c.line.cut.Store(true)
				<-time.After(time.Duration(round%25) * time.Second)
				c.line.cut.Store(false)
				c.end()
			}
			running[at] = start()
		}
		for _, c := range running {
			c.end()
		}
		judge(t, all)
	})
}

// judge requires that no two replicas led at the same time, and that both libraries led.
func judge(t *testing.T, all []*candidate) {
	t.Helper()
	terms := map[bool]int{}
	for i, a := range all {
		began, over := a.led()
		if began.IsZero() {
			continue
		}
		terms[a.leat]++
		for _, b := range all[:i] {
			otherBegan, otherOver := b.led()
			require.True(t, otherBegan.IsZero() || !began.Before(otherOver) || !otherBegan.Before(over),
				"%s led from %v to %v, %s from %v to %v", a.identity, began, over, b.identity, otherBegan, otherOver)
		}
	}
	t.Logf("leat led %d times, client-go %d times", terms[true], terms[false])
	require.Greater(t, terms[true], 10)
	require.Greater(t, terms[false], 10)
}
