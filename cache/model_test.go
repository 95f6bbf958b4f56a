package cache_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// model is the expected content of a cache.
type model map[api.Key]*pod

func byTag(p *pod) []string { return p.tags }

func byTagLength(p *pod) []int {
	var lengths []int
	for _, tag := range p.tags {
		lengths = append(lengths, len(tag))
	}
	return lengths
}

// refuses is an index function that panics for some objects.
func refuses(p *pod) []string {
	if p.node == "node-3" {
		panic("there is no node 3")
	}
	return []string{p.node}
}

// subject is a cache under test, with every kind of index, and its model.
type subject struct {
	ix      *cache.Indexer[*pod]
	node    *cache.Index[*pod, string]
	tag     *cache.Index[*pod, string]
	length  *cache.Index[*pod, int]
	refused *cache.Index[*pod, string]
	model   model
	kept    []kept
}

// kept is a snapshot and the content that it had when it was taken.
type kept struct {
	snapshot *cache.Snapshot[*pod]
	model    model
	version  string
}

func newSubject(hash func(api.Key) uint64, mask uint64) *subject {
	ix := cache.NewWithHash[*pod](hash)
	return &subject{
		ix:      ix,
		node:    cache.AddIndexWithMask(ix, byNode, mask),
		tag:     cache.AddIndexWithMask(ix, byTag, mask),
		length:  cache.AddIndexWithMask(ix, byTagLength, mask),
		refused: cache.AddIndexWithMask(ix, refuses, mask),
		model:   model{},
	}
}

// transact makes random changes in one transaction, then commits or aborts it.
func (s *subject) transact(t require.TestingT, r *rand.Rand, universe, changes int) {
	txn, next := s.ix.Begin(), maps.Clone(s.model)
	for range changes {
		p := randomPod(r, universe)
		key := api.KeyOf(p)
		want, there := next[key]
		got, found := txn.Get(key)
		require.True(t, there == found && want == got)

		var old *pod
		var existed bool
		if r.IntN(3) == 0 {
			old, existed = txn.Delete(key)
			delete(next, key)
		} else {
			old, existed = txn.Set(p)
			next[key] = p
		}
		require.True(t, there == existed && want == old)
		require.True(t, len(next) == txn.Len())
	}
	if r.IntN(4) == 0 {
		txn.Abort()
		return
	}
	version := strconv.Itoa(r.IntN(1000))
	snapshot := txn.Commit(version)
	require.Same(t, snapshot, s.ix.Snapshot())
	s.model = next
	if r.IntN(5) == 0 {
		s.kept = append(s.kept, kept{snapshot, next, version})
	}
}

func randomPod(r *rand.Rand, universe int) *pod {
	p := newPod(r.IntN(universe))
	p.node = fmt.Sprintf("node-%d", r.IntN(6))
	for range r.IntN(4) {
		p.tags = append(p.tags, []string{"a", "b", "cc", "dd", "eee"}[r.IntN(5)])
	}
	return p
}

// verify compares the results of every method of a snapshot with the model.
func (s *subject) verify(t require.TestingT, snapshot *cache.Snapshot[*pod], m model) {
	require.Equal(t, len(m), snapshot.Len())
	seen := model{}
	for key, p := range snapshot.All() {
		require.True(t, api.KeyOf(p) == key)
		require.True(t, seen[key] == nil, "a key comes twice")
		seen[key] = p
	}
	require.True(t, maps.Equal(m, seen))
	list := snapshot.List()
	require.Len(t, list, len(m))
	for _, p := range list {
		require.True(t, m[api.KeyOf(p)] == p)
		got, ok := snapshot.Get(api.KeyOf(p))
		require.True(t, ok && got == p)
	}
	_, ok := snapshot.Get(api.Key{Namespace: "ns-0", Name: "never"})
	require.False(t, ok)

	verifyIndex(t, s.node, snapshot, m, byNode)
	verifyIndex(t, s.tag, snapshot, m, byTag)
	verifyIndex(t, s.length, snapshot, m, byTagLength)
	verifyIndex(t, s.refused, snapshot, m, func(p *pod) []string {
		if p.node == "node-3" {
			return nil
		}
		return []string{p.node}
	})
}

// verifyIndex compares an index with the results of its function for the objects of the model.
func verifyIndex[V comparable](
	t require.TestingT, idx *cache.Index[*pod, V], snapshot *cache.Snapshot[*pod], m model, f func(*pod) []V,
) {
	want := map[V][]api.Key{}
	for key, p := range m {
		for i, v := range f(p) {
			if !slices.Contains(f(p)[:i], v) {
				want[v] = append(want[v], key)
			}
		}
	}
	for v, keys := range want {
		slices.SortFunc(keys, compareKeys)
		var got []api.Key
		for key, p := range idx.In(snapshot, v) {
			require.True(t, m[key] == p)
			got = append(got, key)
		}
		slices.SortFunc(got, compareKeys)
		require.Equal(t, keys, got)
	}
	var none V
	if _, ok := want[none]; !ok {
		for range idx.In(snapshot, none) {
			require.Fail(t, "an object has a value that no object has")
		}
	}
}

// verifyCurrent checks the methods that read only the current state.
func (s *subject) verifyCurrent(t require.TestingT) {
	want := map[string]int{}
	for _, p := range s.model {
		want[p.node]++
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(s.node.Values()))
	for node, n := range want {
		require.Equal(t, n, s.node.Len(node))
		require.Len(t, s.node.ByIndex(node), n)
		keys := s.node.Keys(node)
		require.Len(t, keys, n)
		require.True(t, slices.IsSortedFunc(keys, compareKeys))
	}
	require.Zero(t, s.node.Len("none"))
	require.Empty(t, s.node.ByIndex("none"))
	require.Empty(t, s.node.Keys("none"))
}

func compareKeys(a, b api.Key) int {
	if a.Namespace != b.Namespace {
		if a.Namespace < b.Namespace {
			return -1
		}
		return 1
	}
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}

// hashes make keys collide in three ways: not at all, in 16 groups, all in one.
var hashes = map[string]struct {
	hash func(api.Key) uint64
	mask uint64
}{
	"none": {cache.HashKey, ^uint64(0)},
	"some": {func(k api.Key) uint64 { return cache.HashKey(k) & (0xf << 30) }, 3},
	"all":  {func(api.Key) uint64 { return 7 }, 0},
}

func TestAgainstMap(t *testing.T) {
	for name, h := range hashes {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("collisions=%s/seed=%d", name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 20))
				s := newSubject(h.hash, h.mask)
				for range 60 {
					s.transact(t, r, 30+r.IntN(200), r.IntN(60))
					s.verify(t, s.ix.Snapshot(), s.model)
					s.verifyCurrent(t)
				}
				require.NotEmpty(t, s.kept)
				for _, k := range s.kept {
					require.Equal(t, k.version, k.snapshot.ResourceVersion())
					s.verify(t, k.snapshot, k.model)
				}
			})
		}
	}
}

// TestFillAgainstMap checks that Fill gives the same result as Set for every object, whether the cache was empty or
// not, and that later changes work.
func TestFillAgainstMap(t *testing.T) {
	for name, h := range hashes {
		for _, before := range []int{0, 40} {
			t.Run(fmt.Sprintf("collisions=%s/before=%d", name, before), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(before), 21))
				s := newSubject(h.hash, h.mask)
				txn := s.ix.Begin()
				for i := range before {
					p := newPod(i)
					txn.Set(p)
					s.model[api.KeyOf(p)] = p
				}
				var list []*pod
				for _, i := range r.Perm(300) {
					p := newPod(i)
					p.node, p.tags = fmt.Sprintf("node-%d", r.IntN(6)), []string{"a", strconv.Itoa(r.IntN(3))}
					list = append(list, p)
					s.model[api.KeyOf(p)] = p
				}
				txn.Fill(list)
				clear(list) // the caller may reuse its slice
				s.verify(t, txn.Commit("1"), s.model)
				for range 20 {
					s.transact(t, r, 300, r.IntN(60))
					s.verify(t, s.ix.Snapshot(), s.model)
					s.verifyCurrent(t)
				}
			})
		}
	}
}

func TestCollidingKeys(t *testing.T) {
	h := hashes["all"]
	s := newSubject(h.hash, h.mask)
	txn := s.ix.Begin()
	for i := range 500 {
		p := newPod(i)
		p.tags = []string{"a", strconv.Itoa(i % 3)}
		txn.Set(p)
		s.model[api.KeyOf(p)] = p
	}
	s.verify(t, txn.Commit("1"), s.model)
	require.Equal(t, 500, s.tag.Len("a"))
	require.Equal(t, 167, s.tag.Len("0"))
	require.True(t, slices.IsSortedFunc(s.tag.ByIndex("a"), func(a, b *pod) int {
		return compareKeys(api.KeyOf(a), api.KeyOf(b))
	}), "keys of one hash come in their own order")

	for _, p := range s.ix.List() {
		txn = s.ix.Begin()
		txn.Delete(api.KeyOf(p))
		txn.Commit("2")
	}
	require.Zero(t, s.ix.Len())
	require.Empty(t, slices.Collect(s.tag.Values()))
}

func FuzzAgainstMap(f *testing.F) {
	f.Add(uint64(1), uint64(2), byte(3), byte(20))
	f.Add(uint64(7), uint64(0), byte(30), byte(200))
	f.Fuzz(func(t *testing.T, seed, mask uint64, universe, changes byte) {
		r := rand.New(rand.NewPCG(seed, 21))
		s := newSubject(func(k api.Key) uint64 { return cache.HashKey(k) & mask }, mask)
		for range 6 {
			s.transact(t, r, 1+int(universe), int(changes))
		}
		s.verify(t, s.ix.Snapshot(), s.model)
		s.verifyCurrent(t)
		for _, k := range s.kept {
			s.verify(t, k.snapshot, k.model)
		}
	})
}
