package cache_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

func set(ix *cache.Indexer[*pod], pods ...*pod) *cache.Snapshot[*pod] {
	txn := ix.Begin()
	for _, p := range pods {
		txn.Set(p)
	}
	return txn.Commit("1")
}

func TestIndexAddedLate(t *testing.T) {
	ix := cache.New[*pod]()
	fill(ix, 3000)
	before := ix.Snapshot()
	nodes := cache.AddIndex(ix, byNode)
	after := ix.Snapshot()

	require.Equal(t, before.List(), after.List())
	require.Equal(t, before.ResourceVersion(), after.ResourceVersion())
	require.Len(t, slices.Collect(nodes.Values()), 1000)
	require.Len(t, nodes.ByIndex("node-7"), 3)
	require.Equal(t, maps.Collect(nodes.In(after, "node-7")), maps.Collect(nodes.In(before, "node-7")),
		"a snapshot that is older than the index is searched")
	for range nodes.In(before, "node-7") {
		break // leave the search early
	}

	elsewhere := cache.New[*pod]()
	cache.AddIndex(elsewhere, byTag)
	p := &pod{name: "a", node: "node-7"}
	set(elsewhere, p)
	require.Equal(t, map[api.Key]*pod{{Name: "a"}: p}, maps.Collect(nodes.In(elsewhere.Snapshot(), "node-7")),
		"a snapshot of another cache is searched")
}

func TestIndexIsLeftAlone(t *testing.T) {
	ix := cache.New[*pod]()
	cache.AddIndex(ix, byNode)
	cache.AddIndex(ix, byTag)
	a := &pod{name: "a", node: "n1", tags: []string{"x", "y", "z"}}
	before := set(ix, a, &pod{name: "b", node: "n2", tags: []string{"x"}})

	same := *a
	after := set(ix, &same)
	require.True(t, &before.Roots()[0] == &after.Roots()[0], "the list of roots is reused")

	reordered := *a
	reordered.tags = []string{"z", "x", "y", "x"}
	after = set(ix, &reordered)
	require.True(t, before.Roots()[1] == after.Roots()[1], "the same values in another order are the same values")

	retagged := *a
	retagged.tags = []string{"x", "y"}
	after = set(ix, &retagged)
	require.True(t, before.Roots()[0] == after.Roots()[0])
	require.False(t, before.Roots()[1] == after.Roots()[1])
}

func TestIndexFuncIsAskedOnlyAsNeeded(t *testing.T) {
	ix := cache.New[*pod]()
	calls := 0
	idx := cache.AddIndex(ix, func(p *pod) []string {
		calls++
		return p.tags
	})
	a := &pod{name: "a", tags: []string{"x"}}
	set(ix, a)
	require.Equal(t, 1, calls)
	b := *a
	set(ix, &b)
	require.Equal(t, 3, calls, "one more call for the old object and one for the new object")
	idx.ByIndex("x")
	idx.Keys("x")
	idx.Len("x")
	ix.List()
	require.Equal(t, 3, calls, "readers do not ask")
}

func TestManyValuesOfOneObject(t *testing.T) {
	ix := cache.New[*pod]()
	idx := cache.AddIndex(ix, byTag)
	addresses := func(from, to int) []string {
		var list []string
		for i := from; i < to; i++ {
			list = append(list, fmt.Sprintf("10.0.0.%d", i), fmt.Sprintf("10.0.0.%d", i))
		}
		return list
	}
	set(ix, &pod{name: "a", tags: addresses(0, 1000)}, &pod{name: "b", tags: addresses(990, 992)})
	require.Len(t, slices.Collect(idx.Values()), 1000)
	require.Equal(t, 2, idx.Len("10.0.0.991"))
	set(ix, &pod{name: "a", tags: addresses(10, 1010)})
	require.Len(t, slices.Collect(idx.Values()), 1000)
	require.Zero(t, idx.Len("10.0.0.9"))
	require.Equal(t, []api.Key{{Name: "a"}, {Name: "b"}}, idx.Keys("10.0.0.991"))
	require.Equal(t, 1, idx.Len("10.0.0.1009"))
}

func TestIndexDoesNotWriteToValues(t *testing.T) {
	ix := cache.New[*pod]()
	own := []string{"b", "a", "b", "a"}
	idx := cache.AddIndex(ix, func(*pod) []string { return own })
	set(ix, &pod{name: "x"})
	require.Equal(t, []string{"b", "a", "b", "a"}, own)
	require.Equal(t, 1, idx.Len("a"))
}

func TestPanicOfIndexFunc(t *testing.T) {
	ix := cache.New[*pod]()
	set(ix, &pod{name: "early", node: "node-3"})
	other := cache.AddIndex(ix, byNode)
	idx := cache.AddIndex(ix, refuses)
	require.Equal(t, 1, idx.Panics())
	require.EqualError(t, idx.LastPanic(), "cache: index function panicked for early: there is no node 3")
	require.Contains(t, string(idx.LastPanic().Panic.Stack), "refuses")

	set(ix, &pod{namespace: "ns", name: "bad", node: "node-3"}, &pod{name: "good", node: "node-1"})
	require.Equal(t, 2, idx.Panics())
	require.Equal(t, api.Key{Namespace: "ns", Name: "bad"}, idx.LastPanic().Key)
	require.Equal(t, 3, ix.Len())
	require.Equal(t, []api.Key{{Name: "good"}}, idx.Keys("node-1"))
	require.Empty(t, idx.Keys("node-3"))
	require.Equal(t, 2, other.Len("node-3"), "the other index still has it")

	set(ix, &pod{namespace: "ns", name: "bad", node: "node-1"})
	require.Equal(t, 2, idx.Panics(), "a panic for the old object is not counted again")
	require.Equal(t, 2, idx.Len("node-1"))
	set(ix, &pod{namespace: "ns", name: "bad", node: "node-3"})
	require.Equal(t, 3, idx.Panics())
	require.Equal(t, 1, idx.Len("node-1"), "it left its old value")

	txn := ix.Begin()
	txn.Set(&pod{name: "never", node: "node-3"})
	txn.Abort()
	require.Equal(t, 3, idx.Panics(), "an aborted transaction does not count")
	require.Panics(t, func() { cache.AddIndex[*pod, string](ix, nil) })
}

func TestOddValues(t *testing.T) {
	ix := cache.New[*pod]()
	floats := cache.AddIndex(ix, func(p *pod) []float64 { return []float64{math.NaN(), 1, math.Copysign(0, -1), 0} })
	anything := cache.AddIndex(ix, func(p *pod) []any {
		if p.node == "bad" {
			return []any{"fine", []string{"cannot be compared"}}
		}
		return []any{1, "1", p.name, nil}
	})
	empty := cache.AddIndex(ix, func(p *pod) []struct{} { return []struct{}{{}, {}} })
	set(ix, &pod{name: "a"}, &pod{name: "b"}, &pod{name: "c", node: "bad"})

	require.ElementsMatch(t, []float64{1, 0}, slices.Collect(floats.Values()))
	require.Empty(t, floats.ByIndex(math.NaN()))
	require.Equal(t, 3, floats.Len(0))
	require.Equal(t, []api.Key{{Name: "a"}, {Name: "b"}}, anything.Keys("1"))
	require.Equal(t, []api.Key{{Name: "a"}}, anything.Keys("a"))
	require.Equal(t, 2, anything.Len(nil))
	require.Equal(t, 1, anything.Panics())
	require.Zero(t, anything.Len("fine"))
	require.Equal(t, 3, empty.Len(struct{}{}))

	txn := ix.Begin()
	for _, p := range ix.List() {
		txn.Delete(api.KeyOf(p))
	}
	txn.Commit("2")
	require.Empty(t, slices.Collect(floats.Values()))
	require.Empty(t, slices.Collect(anything.Values()))
	require.Empty(t, slices.Collect(empty.Values()))
}
