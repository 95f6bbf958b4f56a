package cache_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/internal/fixture"
)

// pod is the object type of the tests. It resembles a projection.
type pod struct {
	namespace, name string
	uid             types.UID
	version         string
	node            string
	tags            []string
	labels          map[string]string
}

func (p *pod) GetNamespace() string         { return p.namespace }
func (p *pod) GetName() string              { return p.name }
func (p *pod) GetUID() types.UID            { return p.uid }
func (p *pod) GetResourceVersion() string   { return p.version }
func (p *pod) GetLabels() map[string]string { return p.labels }

var (
	_ cache.Reader[*pod] = (*cache.Indexer[*pod])(nil)
	_ cache.Reader[*pod] = (*cache.Snapshot[*pod])(nil)
)

func newPod(i int) *pod {
	return &pod{
		namespace: fmt.Sprintf("ns-%d", i%7), name: fmt.Sprintf("pod-%06d", i), uid: types.UID(fmt.Sprint("u", i)),
		version: fmt.Sprint(i), node: fmt.Sprintf("node-%d", i%1000),
	}
}

func byNode(p *pod) []string { return []string{p.node} }

// fill puts n pods into an Indexer and returns them.
func fill(ix *cache.Indexer[*pod], n int) []*pod {
	pods := make([]*pod, n)
	txn := ix.Begin()
	for i := range pods {
		pods[i] = newPod(i)
		txn.Set(pods[i])
	}
	txn.Commit("1")
	return pods
}

func TestNothingShowsBeforeCommit(t *testing.T) {
	ix := cache.New[*pod]()
	nodes := cache.AddIndex(ix, byNode)
	require.Empty(t, ix.ResourceVersion())
	p := newPod(1)

	txn := ix.Begin()
	_, existed := txn.Set(p)
	require.False(t, existed)
	require.Zero(t, ix.Len())
	require.Empty(t, ix.List())
	require.Empty(t, nodes.ByIndex("node-1"))
	got, ok := txn.Get(api.KeyOf(p))
	require.True(t, ok)
	require.Same(t, p, got)
	require.Equal(t, 1, txn.Len())

	s := txn.Commit("7")
	require.Same(t, s, ix.Snapshot())
	require.Equal(t, "7", ix.ResourceVersion())
	require.Equal(t, []*pod{p}, ix.List())
	require.Equal(t, []*pod{p}, nodes.ByIndex("node-1"))
	got, ok = ix.Get(api.KeyOf(p))
	require.True(t, ok)
	require.Same(t, p, got)
}

func TestCommitOfNothingMovesTheVersion(t *testing.T) {
	ix := cache.New[*pod]()
	cache.AddIndex(ix, byNode)
	fill(ix, 10)
	before := ix.Snapshot()
	after := ix.Begin().Commit("2")
	require.Equal(t, "1", before.ResourceVersion())
	require.Equal(t, "2", after.ResourceVersion())
	require.Equal(t, before.List(), after.List())
}

func TestEndedTransactions(t *testing.T) {
	ix := cache.New[*pod]()
	p := newPod(1)
	txn := ix.Begin()
	txn.Set(p)
	txn.Commit("1")
	txn.Abort() // Abort after Commit does nothing, so that callers can defer it
	require.Equal(t, 1, ix.Len())

	aborted := ix.Begin()
	aborted.Delete(api.KeyOf(p))
	aborted.Abort()
	aborted.Abort()
	require.Equal(t, 1, ix.Len())

	for _, ended := range []*cache.Txn[*pod]{txn, aborted} {
		require.Panics(t, func() { ended.Set(p) })
		require.Panics(t, func() { ended.Get(api.KeyOf(p)) })
		require.Panics(t, func() { ended.Delete(api.KeyOf(p)) })
		require.Panics(t, func() { ended.Len() })
		require.Panics(t, func() { ended.Commit("2") })
	}
	ix.Begin().Abort() // the lock is free
}

func TestWritersQueue(t *testing.T) {
	const writers, writes = 8, 100
	ix := cache.New[*pod]()
	key := api.Key{Name: "counter"}
	set(ix, &pod{name: key.Name, tags: []string{}})
	var queue sync.WaitGroup
	for range writers {
		queue.Go(func() {
			for i := range writes {
				txn := ix.Begin()
				old, _ := txn.Get(key)
				txn.Set(&pod{name: key.Name, tags: append(slices.Clone(old.tags), "x")})
				if i%10 == 9 {
					txn.Abort()
				} else {
					txn.Commit("2")
				}
			}
		})
		queue.Go(func() { cache.AddIndex(ix, byTag) })
	}
	queue.Wait()
	counter, _ := ix.Get(key)
	require.Len(t, counter.tags, writers*writes*9/10)
	require.Len(t, ix.Snapshot().Roots(), writers)
}

func TestOrderDependsOnKeysAlone(t *testing.T) {
	one, other := cache.New[*pod](), cache.New[*pod]()
	fill(one, 3000)

	r := rand.New(rand.NewPCG(1, 1))
	pods := fill(other, 6000)
	for _, i := range r.Perm(6000) {
		txn := other.Begin()
		txn.Delete(api.KeyOf(pods[i]))
		txn.Commit("2")
	}
	for _, i := range r.Perm(3000) {
		txn := other.Begin()
		txn.Set(pods[i])
		txn.Commit("3")
	}
	require.Equal(t, keysOf(one), keysOf(other))

	// This is the exact order. Recordings and transcripts depend on it, so a change must be noticed.
	few := cache.New[*pod]()
	fill(few, 5)
	require.Equal(t, []string{"ns-3/pod-000003", "ns-0/pod-000000", "ns-1/pod-000001", "ns-2/pod-000002", "ns-4/pod-000004"},
		keysOf(few))
}

func keysOf(r cache.Reader[*pod]) []string {
	var keys []string
	for key := range r.All() {
		keys = append(keys, api.FormatKey(key))
	}
	return keys
}

func TestLoopsEndEarly(t *testing.T) {
	ix := cache.New[*pod]()
	nodes := cache.AddIndex(ix, byNode)
	fill(ix, 5000)
	count := 0
	for range ix.All() {
		if count++; count == 100 {
			break
		}
	}
	require.Equal(t, 100, count)
	for range nodes.In(ix.Snapshot(), "node-7") {
		count++
		break
	}
	for range nodes.Values() {
		count++
		break
	}
	require.Equal(t, 102, count)
}

func TestHashSpreads(t *testing.T) {
	for name, key := range map[string]func(int) api.Key{
		"counted":     func(i int) api.Key { return api.Key{Namespace: "default", Name: fmt.Sprintf("web-%d", i)} },
		"padded":      func(i int) api.Key { return api.Key{Namespace: "default", Name: fmt.Sprintf("web-%08d", i)} },
		"long prefix": func(i int) api.Key { return api.Key{Name: fmt.Sprintf("a-rather-long-prefix-of-names-%d", i)} },
		"namespaces":  func(i int) api.Key { return api.Key{Namespace: fmt.Sprintf("ns-%d", i), Name: "config"} },
		"both":        func(i int) api.Key { return api.Key{Namespace: fmt.Sprint(i % 300), Name: fmt.Sprint(i / 300)} },
		"shifted":     func(i int) api.Key { return api.Key{Namespace: "aaaaaaaaaaaaaaaaaaaaaaaa"[:i%20], Name: fmt.Sprint(i)} },
	} {
		t.Run(name, func(t *testing.T) {
			const n, buckets = 1 << 16, 1 << 12
			var top, low [buckets]int
			seen := map[uint64]struct{}{}
			for i := range n {
				h := cache.HashKey(key(i))
				seen[h] = struct{}{}
				top[h>>52]++
				low[h&(buckets-1)]++
			}
			require.Len(t, seen, n, "hashes that are equal")
			// 16 are expected in each, with a standard deviation of 4.
			require.Less(t, slices.Max(top[:]), 16+7*4)
			require.Less(t, slices.Max(low[:]), 16+7*4)
		})
	}
	split := func(namespace, name string) uint64 { return cache.HashKey(api.Key{Namespace: namespace, Name: name}) }
	require.NotEqual(t, split("ab", "c"), split("a", "bc"))
	require.NotEqual(t, split("", "a"), split("a", ""))
	require.NotEqual(t, split("a\x00", "b"), split("a", "\x00b"))
	require.NotEqual(t, split("a", "b"), split("a\x00", "b"))
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestBytesOfOneChange(t *testing.T) {
	const changes = 500
	ix := cache.New[*pod]()
	pods := fill(ix, 200_000)
	cache.AddIndex(ix, byNode)
	next := make([]*pod, changes)
	for i := range next {
		changed := *pods[i*397]
		next[i] = &changed
	}
	apply := func() uint64 {
		return allocated(func() {
			for _, p := range next {
				txn := ix.Begin()
				txn.Set(p)
				txn.Commit("2")
			}
		}) / changes
	}
	stays := apply()
	t.Log(stays)
	require.Less(t, stays, uint64(2<<10), "bytes to publish an object whose index values stay")
	for i, p := range next {
		moved := *p
		moved.node = fmt.Sprintf("node-%d", i%1000)
		next[i] = &moved
	}
	moved := apply()
	t.Log(moved)
	require.Less(t, moved, uint64(4<<10), "bytes to publish an object that moves in an index of 1000 values")
	require.Less(t, allocated(func() {
		for range changes {
			ix.Begin().Commit("3")
		}
	})/changes, uint64(400), "bytes to publish a version")
}

func TestBytesOfAnObject(t *testing.T) {
	const n = 100_000
	pods := make([]*pod, n)
	for i := range pods {
		pods[i] = newPod(i)
	}
	before := fixture.Heap()
	ix := cache.New[*pod]()
	cache.AddIndex(ix, byNode)
	txn := ix.Begin()
	for _, p := range pods {
		txn.Set(p)
	}
	txn.Commit("1")
	bytes := (fixture.Heap() - before) / n
	t.Logf("%d bytes an object", bytes)
	require.Less(t, bytes, int64(60))
	runtime.KeepAlive(pods)
	runtime.KeepAlive(ix)
}

func TestReadingDoesNotAllocate(t *testing.T) {
	ix := cache.New[*pod]()
	nodes := cache.AddIndex(ix, byNode)
	key := api.KeyOf(fill(ix, 10_000)[77])
	s, sum := ix.Snapshot(), 0
	for name, read := range map[string]func(){
		"Get": func() {
			if _, ok := ix.Get(key); ok {
				sum++
			}
		},
		"All": func() {
			for range s.All() {
				sum++
			}
		},
		"In": func() {
			for range nodes.In(s, "node-7") {
				sum++
			}
		},
		"Len": func() { sum += nodes.Len("node-7") },
	} {
		require.Zero(t, testing.AllocsPerRun(10, read), name)
	}
	require.Equal(t, 11*(1+10_000+10+10), sum)
}

// TestReadersSeeWholeVersions has a writer that gives all objects the same tag in each version. Readers fail if they
// see two tags.
func TestReadersSeeWholeVersions(t *testing.T) {
	const objects, versions = 200, 300
	ix := cache.New[*pod]()
	tags := cache.AddIndex(ix, byTag)
	write := func(version int) {
		txn := ix.Begin()
		defer txn.Abort()
		tag := strconv.Itoa(version)
		for i := range objects {
			p := newPod(i)
			p.tags = []string{tag}
			txn.Set(p)
			if version%10 == 3 && i%2 == 0 {
				txn.Delete(api.KeyOf(p))
			}
		}
		if version%7 != 0 { // the others are aborted
			txn.Commit(tag)
		}
	}
	check := func(s *cache.Snapshot[*pod]) error {
		count, tag := 0, s.ResourceVersion()
		for _, p := range s.All() {
			if count++; p.tags[0] != tag {
				return fmt.Errorf("version %s contains an object of version %s", tag, p.tags[0])
			}
		}
		for range tags.In(s, tag) {
			count--
		}
		if count != 0 {
			return fmt.Errorf("version %s has %d more objects than its index", tag, count)
		}
		return nil
	}
	write(1)
	var failure atomic.Value
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var old []*cache.Snapshot[*pod]
			for !done.Load() {
				s := ix.Snapshot()
				if len(old) < 20 {
					old = append(old, s)
				}
				for _, s := range append(old, s) {
					if err := check(s); err != nil {
						failure.Store(err)
						return
					}
				}
			}
		})
	}
	for version := range versions {
		write(2 + version)
		if version == versions/2 {
			cache.AddIndex(ix, byNode)
		}
	}
	done.Store(true)
	readers.Wait()
	require.Nil(t, failure.Load())
}
