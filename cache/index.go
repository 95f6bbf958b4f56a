package cache

import (
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trie"
)

// IndexFunc says under which values an object is to be found: none, one or several; a value that comes twice counts
// once, and one that is not equal to itself (a NaN) does not count. It must depend on the object alone, because it is
// asked again, with the same object, what to take out of the index. It is called by the writer, under its lock, and must
// use neither the Indexer nor the informer; the slice is not kept. If it panics, the object is left out of that index.
// It corresponds to cache.IndexFunc of client-go, which returns strings, and whose errors are panics under the lock.
type IndexFunc[T any, V comparable] func(object T) []V

// ByNamespace is an IndexFunc: the namespace of an object, empty for a cluster-scoped one.
// It corresponds to cache.MetaNamespaceIndexFunc of client-go.
func ByNamespace[T api.Object](object T) []string { return []string{object.GetNamespace()} }

// Index finds objects by a value that an IndexFunc gives them. It changes together with its Indexer, in the same atomic
// step, and only when the values of an object do. All its methods may be called from anywhere.
// It corresponds to a named index of cache.Indexer in client-go; having a type, it needs no name that could be mistyped.
type Index[T api.Object, V comparable] struct {
	indexer *Indexer[T]
	slot    int // of its root in a snapshot
	of      IndexFunc[T, V]
	hash    func(V) uint64

	panics    atomic.Int64
	lastPanic atomic.Pointer[PanicError]

	edit indexEdit[V] // guarded by the Indexer's mu
}

// PanicError says what an index function did to an object.
type PanicError struct {
	Key   api.Key
	Value any    // what it panicked with
	Stack []byte // of the goroutine that called it
}

// Error returns one line with the key of the object and the value of the panic.
func (e *PanicError) Error() string {
	return fmt.Sprintf("cache: index function panicked for %s: %v", api.FormatKey(e.Key), e.Value)
}

// AddIndex adds an index to an Indexer, whether or not that has objects already: the index knows all of them when
// AddIndex returns, and the state of the Indexer is otherwise what it was. It waits for a transaction that is open.
// Snapshots taken earlier can be asked too, but answer by looking at every object.
// It corresponds to AddIndexers of client-go.
func AddIndex[T api.Object, V comparable](ix *Indexer[T], f IndexFunc[T, V]) *Index[T, V] {
	seed := maphash.MakeSeed()
	return addIndex(ix, f, func(v V) uint64 { return maphash.Comparable(seed, v) })
}

func addIndex[T api.Object, V comparable](ix *Indexer[T], f IndexFunc[T, V], hash func(V) uint64) *Index[T, V] {
	if f == nil {
		panic("cache: AddIndex needs an index function")
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	base := ix.current.Load()
	idx := &Index[T, V]{indexer: ix, slot: len(ix.indexes), of: f, hash: hash}
	ix.edits++
	idx.begin(trie.Tree[posting[V]]{}, ix.edits)
	for leaf := range base.objects.Leaves() {
		for i := range leaf {
			idx.apply(change[T]{hash: leaf[i].Hash, new: leaf[i].Item, hasNew: true})
		}
	}
	root, _ := idx.commit()
	next := *base
	next.roots = append(slices.Clone(base.roots), root)
	ix.indexes = append(ix.indexes, idx)
	ix.current.Store(&next)
	return idx
}

// ByIndex returns the objects that have the value in the current snapshot, in the order of Snapshot.All. The slice is
// the caller's, the objects are shared.
func (idx *Index[T, V]) ByIndex(value V) []T {
	s := idx.indexer.Snapshot()
	list := make([]T, 0, idx.find(s, value).len())
	for _, object := range idx.In(s, value) {
		list = append(list, object)
	}
	return list
}

// In yields the objects that have the value in a snapshot, and their keys, in the order of Snapshot.All. A snapshot that
// is older than the index, or of another Indexer, is searched object by object.
func (idx *Index[T, V]) In(s *Snapshot[T], value V) iter.Seq2[api.Key, T] {
	return func(yield func(api.Key, T) bool) {
		if _, indexed := idx.root(s); !indexed {
			idx.scan(s, value, yield)
			return
		}
		if p := idx.find(s, value); p != nil {
			for id := range p.ids() {
				if !idx.yieldID(s, id, value, yield) {
					return
				}
			}
		}
	}
}

// yieldID yields the objects of one hash that have the value.
func (idx *Index[T, V]) yieldID(s *Snapshot[T], id uint64, value V, yield func(api.Key, T) bool) bool {
	entries := s.objects.Find(id)
	for i := range entries {
		object := entries[i].Item
		if len(entries) > 1 && !idx.Has(object, value) {
			continue
		}
		if !yield(api.KeyOf(object), object) {
			return false
		}
	}
	return true
}

// scan does without the index.
func (idx *Index[T, V]) scan(s *Snapshot[T], value V, yield func(api.Key, T) bool) {
	for key, object := range s.All() {
		if idx.Has(object, value) && !yield(key, object) {
			return
		}
	}
}

// Has tells whether the index function gives an object the value, be the object in a cache or not.
func (idx *Index[T, V]) Has(object T, value V) bool {
	return slices.Contains(idx.valuesOf(object, nil), value)
}

// Keys returns the keys of the objects that have the value in the current snapshot, sorted by namespace and name.
// It corresponds to IndexKeys of client-go.
func (idx *Index[T, V]) Keys(value V) []api.Key {
	s := idx.indexer.Snapshot()
	keys := make([]api.Key, 0, idx.find(s, value).len())
	for key := range idx.In(s, value) {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// Values yields every value that some object of the current snapshot has, each once, in no particular order.
// It corresponds to ListIndexFuncValues of client-go.
func (idx *Index[T, V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		root, _ := idx.root(idx.indexer.Snapshot())
		for leaf := range root.Leaves() {
			for i := range leaf {
				if !yield(leaf[i].Item.value) {
					return
				}
			}
		}
	}
}

// Len returns how many objects of the current snapshot have the value, without looking at them.
func (idx *Index[T, V]) Len(value V) int {
	return idx.find(idx.indexer.Snapshot(), value).len()
}

// Panics returns how often the index function panicked for an object that was put in: each time that object was left out
// of this index.
func (idx *Index[T, V]) Panics() int { return int(idx.panics.Load()) }

// LastPanic returns the last of those panics, nil if there was none.
func (idx *Index[T, V]) LastPanic() *PanicError { return idx.lastPanic.Load() }

// root returns the index as it was in a snapshot, and whether the snapshot has it.
func (idx *Index[T, V]) root(s *Snapshot[T]) (trie.Tree[posting[V]], bool) {
	if s.indexer != idx.indexer || idx.slot >= len(s.roots) {
		return trie.Tree[posting[V]]{}, false
	}
	return s.roots[idx.slot].(trie.Tree[posting[V]]), true
}

// find returns what a snapshot has under a value, nil if that is nothing.
func (idx *Index[T, V]) find(s *Snapshot[T], value V) *posting[V] {
	root, _ := idx.root(s)
	entries := root.Find(idx.hash(value))
	for i := range entries {
		if entries[i].Item.value == value {
			return &entries[i].Item
		}
	}
	return nil
}
