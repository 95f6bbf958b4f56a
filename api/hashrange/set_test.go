package hashrange_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestHashIsThatOfTheServer(t *testing.T) {
	for _, value := range []string{"", "a", "default", "kube-system", "6f2a1f9e-63c5-4a29-9a07-2e0e3a4f3b1d"} {
		require.Equal(t, sharding.HashField(value), fmt.Sprintf("%016x", hashrange.Hash(value)))
	}
}

func TestSelectorIsThatOfTheServer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		s := randomSet(r)
		if s.Empty() {
			continue
		}
		for _, field := range []hashrange.Field{hashrange.UID, hashrange.Namespace} {
			var requirements []sharding.ShardRangeRequirement
			for _, part := range s {
				start, end, _ := strings.Cut(part.String(), "-")
				requirements = append(requirements, sharding.ShardRangeRequirement{Key: string(field), Start: start, End: end})
			}
			server := sharding.NewSelector(requirements...)
			require.Equal(t, server.String(), s.Selector(field))
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				UID: types.UID(fmt.Sprint(r.Uint64())), Namespace: fmt.Sprint("team-", r.IntN(100)),
			}}
			want := must.Get(server.Matches(o))(t)
			value := o.Namespace
			if field == hashrange.UID {
				value = string(o.UID)
			}
			require.Equal(t, want, s.Contains(hashrange.Hash(value)))
		}
	}
	require.Panics(t, func() { hashrange.Set(nil).Selector(hashrange.UID) })
}

// randomSet returns a set whose bounds are often equal to those of others, and often at the ends of the space.
func randomSet(r *rand.Rand) hashrange.Set {
	var ranges []hashrange.Range
	for range r.IntN(5) {
		ranges = append(ranges, hashrange.Range{From: uint64(r.IntN(8)) << 61, To: uint64(r.IntN(8)) << 61})
		if r.IntN(3) == 0 {
			ranges = append(ranges, hashrange.Range{From: r.Uint64(), To: r.Uint64()})
		}
	}
	return hashrange.NewSet(ranges...)
}

// TestSets compares the operations with their definition at each bound and beside it.
func TestSets(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 3000 {
		a, b := randomSet(r), randomSet(r)
		requireNormal(t, a)
		union, both, minus := a.Union(b), a.Intersect(b), a.Minus(b)
		for _, s := range []hashrange.Set{union, both, minus} {
			requireNormal(t, s)
			require.True(t, must.Get(hashrange.Parse(s.String()))(t).Equal(s))
		}
		for _, h := range probes(a, b) {
			inA, inB := a.Contains(h), b.Contains(h)
			require.Equal(t, inA || inB, union.Contains(h), "%s ∪ %s at %x", a, b, h)
			require.Equal(t, inA && inB, both.Contains(h), "%s ∩ %s at %x", a, b, h)
			require.Equal(t, inA && !inB, minus.Contains(h), "%s ∖ %s at %x", a, b, h)
		}
		require.InDelta(t, a.Share(), both.Share()+minus.Share(), 1e-9)
		require.True(t, minus.Union(both).Equal(a))
	}
	require.True(t, hashrange.All().Minus(hashrange.All()).Empty())
	require.Equal(t, 1.0, hashrange.All().Share())
	require.True(t, hashrange.Range{From: 5, To: 5}.Empty())
	require.False(t, hashrange.Range{From: 5, To: 5}.Contains(5))
}

func probes(sets ...hashrange.Set) []uint64 {
	all := []uint64{0, 1, math.MaxUint64}
	for _, s := range sets {
		for _, r := range s {
			all = append(all, r.From-1, r.From, r.From+1, r.To-1, r.To, r.To+1)
		}
	}
	return all
}

func requireNormal(t *testing.T, s hashrange.Set) {
	t.Helper()
	for i, r := range s {
		require.False(t, r.Empty())
		if i > 0 {
			require.NotZero(t, s[i-1].To)
			require.Less(t, s[i-1].To, r.From, "%s", s)
		}
	}
}

func TestWrongTexts(t *testing.T) {
	for _, text := range []string{
		"x", "-", "0x0", ",", "0x0000000000000000-0x0000000000000000", "0x0000000000000001-0x0000000000000001",
		"0000000000000000-0x10000000000000000", "0x0000000000000000-0x8000000000000000,0x8000000000000000-0x9000000000000000",
		"0x8000000000000000-0x9000000000000000,0x0000000000000000-0x1000000000000000",
		"0x00000000000000000-0x10000000000000000", strings.Repeat("x", 1000),
	} {
		_, err := hashrange.Parse(text)
		require.ErrorContains(t, err, "hashrange: ", text)
		require.Less(t, len(err.Error()), 200)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0x0000000000000000-0x10000000000000000")
	f.Add("0x0000000000000000-0x8000000000000000,0x9000000000000000-0x10000000000000000")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := hashrange.Parse(text)
		if err == nil {
			require.Equal(t, text, s.String())
			requireNormal(t, s)
		}
	})
}
