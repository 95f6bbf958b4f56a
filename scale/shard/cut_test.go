package shard_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/scale/shard"
)

func TestCut(t *testing.T) {
	require.Nil(t, shard.Cut(0))
	before := []hashrange.Set{}
	most := 0
	for n := 1; n <= 64; n++ {
		sets := shard.Cut(n)
		require.Len(t, sets, n)
		require.Equal(t, sets, shard.Cut(n))
		var all hashrange.Set
		total := 0
		for i, s := range sets {
			require.True(t, all.Intersect(s).Empty(), "%d members: seat %d overlaps", n, i)
			all = all.Union(s)
			require.InEpsilon(t, 1/float64(n), s.Share(), 1e-12)
			require.LessOrEqual(t, len(s), 2*n, "%d members: ranges of seat %d", n, i)
			most = max(most, len(s))
			total += len(s)
		}
		require.LessOrEqual(t, total, n*(n-1)/2+1, "each join splits at most one range of each member")
		require.True(t, all.Equal(hashrange.All()), "%d members: %s", n, all)
		for i, s := range before { // one more member takes from all, and gives to none of them
			require.True(t, sets[i].Minus(s).Empty(), "%d members: seat %d gets %s", n, i, sets[i].Minus(s))
		}
		before = sets
		if n == 2 || n == 3 || n == 5 || n == 10 || n == 20 || n == 50 {
			t.Logf("%d members: %d ranges, at most %d a member", n, total, most)
		}
	}
}

// group is a model of replicas that come and go, each with the seat that it published.
type group map[string]int

func (g group) owners() map[string]hashrange.Set {
	positions := shard.Seats(g)
	parts := shard.Cut(len(g))
	owners := map[string]hashrange.Set{}
	for name, seat := range positions {
		g[name] = seat
		owners[name] = parts[seat]
	}
	return owners
}

// TestMovement compares the owners before and after each join and leave with the bounds that the documentation states.
func TestMovement(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	g, next := group{}, 0
	var joins, leaves, joined, left float64
	for range 2000 {
		before, n := g.owners(), len(g)
		leave := n > 0 && (r.IntN(2) == 0 || n == 16)
		if leave {
			for name := range g { // any
				delete(g, name)
				break
			}
		} else {
			g[fmt.Sprint("replica-", r.Uint32(), "-", next)] = -1
			next++
		}
		after := g.owners()
		moved := 0.0
		for name, s := range before {
			moved += s.Minus(after[name]).Share()
		}
		switch {
		case leave && n > 1:
			require.Less(t, moved, 2/float64(n)+1e-9, "a leave of one of %d", n)
			leaves, left = leaves+1, left+moved*float64(n)
		case !leave && n > 0:
			require.InDelta(t, 1/float64(n+1), moved, 1e-9, "a join to %d", n)
			joins, joined = joins+1, joined+moved*float64(n+1)
		}
	}
	t.Logf("a join moves %.2f/n of all hashes on average, a leave %.2f/n", joined/joins, left/leaves)
}

// TestSeats gives wrong and equal seats to members. Each gets another seat, whatever the order of the members.
func TestSeats(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		g := group{}
		for i := range r.IntN(12) {
			g[fmt.Sprint("replica-", i)] = r.IntN(20) - 4
		}
		positions := shard.Seats(g)
		require.Len(t, positions, len(g))
		taken := map[int]bool{}
		for name, seat := range positions {
			require.False(t, taken[seat])
			require.True(t, seat >= 0 && seat < len(g))
			taken[seat] = true
			g[name] = seat
		}
		require.Equal(t, positions, shard.Seats(g), "published seats stay")
	}
}

// TestBalance measures how evenly objects are divided. UIDs are random. Namespaces often differ only at the end.
func TestBalance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{3, 5, 10} {
		for _, kind := range []struct {
			name  string
			most  float64
			value func(int) string
		}{
			{"10,000 UIDs", 1.15, func(int) string {
				return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12), r.IntN(1<<12), r.Uint64()>>16)
			}},
			{"100 namespaces team-0 to team-99", 10, func(i int) string { return fmt.Sprint("team-", i%100) }},
			{"10,000 namespaces team-0 to team-9999", 2.5, func(i int) string { return fmt.Sprint("team-", i) }},
		} {
			counts := make([]int, n)
			parts := shard.Cut(n)
			for i := range 10_000 {
				hash := hashrange.Hash(kind.value(i))
				for seat, s := range parts {
					if s.Contains(hash) {
						counts[seat]++
					}
				}
			}
			most, sum := 0, 0
			for _, c := range counts {
				most, sum = max(most, c), sum+c
			}
			require.Equal(t, 10_000, sum)
			ratio := float64(most) * float64(n) / 10_000
			t.Logf("%s, %d members: the largest has %.2f times its share: %v", kind.name, n, ratio, counts)
			require.Less(t, ratio, kind.most)
		}
	}
}
