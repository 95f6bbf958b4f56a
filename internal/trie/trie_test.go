package trie_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/trie"
)

type entry = trie.Entry[int]

// model is the plain counterpart of a tree: entries sorted by hash.
type model []entry

func (m model) run(hash uint64) (from, to int) {
	from, _ = slices.BinarySearchFunc(m, hash, func(e entry, h uint64) int {
		if e.Hash < h {
			return -1
		}
		return 1
	})
	to = from
	for to < len(m) && m[to].Hash == hash {
		to++
	}
	return from, to
}

func (m model) entries() []entry { return append([]entry{}, m...) }

func all[E any](t trie.Tree[E]) []trie.Entry[E] {
	list := []trie.Entry[E]{}
	for leaf := range t.Leaves() {
		list = append(list, leaf...)
	}
	return list
}

// distributions are the kinds of hashes that a trie must handle.
var distributions = map[string]func(*rand.Rand) uint64{
	"uniform":  func(r *rand.Rand) uint64 { return r.Uint64N(4096) << 52 },
	"few":      func(r *rand.Rand) uint64 { return r.Uint64N(3) << 62 },
	"one":      func(*rand.Rand) uint64 { return 0xfeed },
	"low bits": func(r *rand.Rand) uint64 { return r.Uint64N(300) },
	"ends": func(r *rand.Rand) uint64 {
		return []uint64{0, 1, 1 << 63, 1<<63 - 1, ^uint64(0), ^uint64(0) - 1}[r.IntN(6)]
	},
	"mixed": func(r *rand.Rand) uint64 { return r.Uint64() >> r.IntN(64) << r.IntN(64) },
}

// mutate makes one random change to an edit and to its model.
func mutate(r *rand.Rand, e *trie.Edit[int], m model, hash uint64, growth int) model {
	from, to := m.run(hash)
	item := r.Int()
	switch op := r.IntN(10); {
	case to == from && op < growth:
		e.Insert(hash, 0, item)
		return slices.Insert(m, from, entry{Item: item, Hash: hash})
	case to == from:
		return m
	case op == 0:
		i := r.IntN(to - from + 1)
		e.Insert(hash, i, item)
		return slices.Insert(m, from+i, entry{Item: item, Hash: hash})
	case op < growth:
		i := r.IntN(to - from)
		e.Replace(hash, i, item)
		m[from+i].Item = item
		return m
	default:
		i := r.IntN(to - from)
		e.Remove(hash, i)
		return slices.Delete(m, from+i, from+i+1)
	}
}

func TestAgainstSlice(t *testing.T) {
	for name, hashes := range distributions {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(name, "/seed=", seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				var tree trie.Tree[int]
				var m model
				for id := uint64(1); id <= 60; id++ {
					e := tree.Edit(id)
					growth := 3 + r.IntN(6) // phases of growth and of shrinking
					for range r.IntN(300) {
						m = mutate(r, &e, m, hashes(r), growth)
					}
					tree = e.Tree()
					require.Equal(t, len(m), tree.Len())
					require.Equal(t, m.entries(), all(tree))
					for range 20 {
						hash := hashes(r)
						from, to := m.run(hash)
						require.ElementsMatch(t, m[from:to], tree.Find(hash))
					}
				}
			})
		}
	}
}

// A tree made by Fill is equal to one made by Insert, and can be edited like it.
func TestFill(t *testing.T) {
	for name, hashes := range distributions {
		for _, n := range []int{0, 1, 20, 21, 22, 400, 5000} {
			t.Run(fmt.Sprint(name, "/n=", n), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(n), 2))
				var m model
				for range n {
					m = append(m, entry{Item: r.Int(), Hash: hashes(r)})
				}
				slices.SortStableFunc(m, func(a, b entry) int { return cmp.Compare(a.Hash, b.Hash) })
				given := slices.Clone(m)
				e := trie.Tree[int]{}.Edit(1)
				e.Fill(given)
				clear(given) // the caller may reuse its slice
				tree := e.Tree()
				require.Equal(t, n, tree.Len())
				require.Equal(t, m.entries(), all(tree))
				before := m.entries()
				edit := tree.Edit(2)
				for range 300 {
					m = mutate(r, &edit, m, hashes(r), 5)
				}
				require.Equal(t, m.entries(), all(edit.Tree()))
				require.Equal(t, before, all(tree))
				if n > 0 {
					require.Panics(t, func() { e.Fill(before) })
				}
			})
		}
	}
}

func TestTreesStayAsTheyWere(t *testing.T) {
	type version struct {
		tree trie.Tree[int]
		m    model
	}
	for name, hashes := range distributions {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			versions := []version{{}}
			for id := uint64(1); id <= 200; id++ {
				base := versions[r.IntN(len(versions))] // branches may also begin at an old version
				e, m := base.tree.Edit(id), slices.Clone(base.m)
				for range r.IntN(60) {
					m = mutate(r, &e, m, hashes(r), 6)
				}
				versions = append(versions, version{e.Tree(), m})
			}
			for _, v := range versions {
				require.Equal(t, v.tree.Len(), len(v.m))
				require.Equal(t, v.m.entries(), all(v.tree))
			}
		})
	}
}

func TestEditLeavesNoTrace(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	tree := filled(r, 5000)
	before := slices.Clone(all(tree))
	dropped := tree.Edit(2)
	for i, e := range before {
		switch i % 3 {
		case 0:
			dropped.Remove(e.Hash, 0)
		case 1:
			dropped.Replace(e.Hash, 0, -1)
		default:
			dropped.Insert(e.Hash+1, 0, -2)
		}
	}
	require.Equal(t, before, all(tree))
	require.Equal(t, 5000, tree.Len())
}

func filled(r *rand.Rand, n int) trie.Tree[int] {
	var empty trie.Tree[int]
	e := empty.Edit(1)
	for i := range n {
		e.Insert(r.Uint64(), 0, i)
	}
	return e.Tree()
}

func TestEqualHashes(t *testing.T) {
	var empty trie.Tree[int]
	e := empty.Edit(1)
	const n = 500
	for i := range n {
		e.Insert(42, i, i)
		e.Insert(43, 0, n-1-i)
	}
	tree := e.Tree()
	require.Equal(t, 2*n, tree.Len())
	for _, hash := range []uint64{42, 43} {
		run := tree.Find(hash)
		require.Len(t, run, n)
		for i := range run {
			require.Equal(t, entry{Item: i, Hash: hash}, run[i])
		}
	}
	require.Empty(t, tree.Find(41))

	e = tree.Edit(2)
	for range n {
		e.Remove(42, 0)
	}
	require.Empty(t, e.Find(42))
	require.Len(t, e.Find(43), n)
	for range n {
		e.Remove(43, 0)
	}
	require.Zero(t, e.Len())
	require.Equal(t, empty, e.Tree(), "an emptied tree is the empty tree")
}

func TestLongPrefixes(t *testing.T) {
	var empty trie.Tree[int]
	e := empty.Edit(1)
	var want []entry
	for shared := range 64 {
		for low := range uint64(70) {
			hash := ^uint64(0)<<(64-shared) | low
			if shared == 0 {
				hash = low
			}
			if len(e.Find(hash)) == 0 {
				e.Insert(hash, 0, int(low))
				want = append(want, entry{Item: int(low), Hash: hash})
			}
		}
	}
	slices.SortFunc(want, func(a, b entry) int {
		if a.Hash < b.Hash {
			return -1
		}
		return 1
	})
	require.Equal(t, want, all(e.Tree()))
	for _, w := range want {
		require.Equal(t, []entry{w}, e.Find(w.Hash))
		e.Remove(w.Hash, 0)
		require.Empty(t, e.Find(w.Hash))
	}
	require.Equal(t, empty, e.Tree())
}

func TestLoopsEndEarly(t *testing.T) {
	tree := filled(rand.New(rand.NewPCG(1, 1)), 10_000)
	leaves := 0
	for range tree.Leaves() {
		if leaves++; leaves == 100 {
			break
		}
	}
	require.Equal(t, 100, leaves)
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestOneEditCopiesOnePath(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	tree := filled(r, 200_000)
	entries := all(tree)
	const edits = 1000
	bytes := allocated(func() {
		for id := range uint64(edits) {
			e := tree.Edit(2 + id)
			e.Replace(entries[r.IntN(len(entries))].Hash, 0, 1)
			tree = e.Tree()
		}
	})
	require.Less(t, bytes/edits, uint64(1500), "bytes an edit of one entry among 200,000")
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestRemovalGivesBack(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	before := heap()
	tree := filled(r, 100_000)
	full := heap() - before
	require.Less(t, full, uint64(100_000*30), "bytes of 100,000 entries of 16 bytes")
	e := tree.Edit(2)
	for _, entry := range slices.Clone(all(tree))[:99_000] {
		e.Remove(entry.Hash, 0)
	}
	tree, e = e.Tree(), trie.Edit[int]{}
	rest := heap() - before
	require.Less(t, rest, full/40, "bytes after 99 of 100 entries were removed")
	require.Equal(t, 1000, tree.Len())

	tree = filled(r, 100_000)
	e = tree.Edit(2)
	for i, entry := range slices.Clone(all(tree)) {
		if i%100 != 0 {
			e.Remove(entry.Hash, 0)
		}
	}
	tree, e = e.Tree(), trie.Edit[int]{}
	rest = heap() - before
	require.Less(t, rest, full/20, "bytes after 99 of each 100 neighbours were removed")
	require.Equal(t, 1000, tree.Len())
}

func TestReadingDoesNotAllocate(t *testing.T) {
	tree := filled(rand.New(rand.NewPCG(5, 5)), 10_000)
	hash := all(tree)[77].Hash
	sum := 0
	require.Zero(t, testing.AllocsPerRun(10, func() { sum += len(tree.Find(hash)) }))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for leaf := range tree.Leaves() {
			sum += len(leaf)
		}
	}))
	require.NotZero(t, sum)
}

func FuzzAgainstSlice(f *testing.F) {
	f.Add(uint64(1), []byte{1, 2, 3})
	f.Add(uint64(2), []byte("\x00\x00\x00\x01\xff\x80\x7f"))
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		r := rand.New(rand.NewPCG(seed, 0))
		var tree trie.Tree[int]
		var m model
		id := uint64(1)
		e := tree.Edit(id)
		for _, b := range script {
			if b == 0 {
				tree = e.Tree()
				id++
				e = tree.Edit(id)
			}
			hash := uint64(b) << (b % 57)
			for range 1 + b%40 {
				m = mutate(r, &e, m, hash+uint64(r.IntN(3)), 7)
			}
		}
		require.Equal(t, m.entries(), all(e.Tree()))
	})
}
