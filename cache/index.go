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

// IndexFunc returns the values under which the index finds an object: none, one or several. A value that appears twice
// counts once. A value that is not equal to itself (a NaN) is ignored.
//
// The result must depend on the object alone, because the index calls the function again with the old object to learn
// which entries to remove. The writer calls it under its lock, so it must use neither the Indexer nor the informer. The
// index does not keep the slice. If the function panics, this index leaves the object out.
//
// It corresponds to cache.IndexFunc of client-go, which returns strings and whose errors cause a panic under the lock.
type IndexFunc[T any, V comparable] func(object T) []V

// ByNamespace is an IndexFunc that returns the namespace of an object, "" for a cluster-scoped object. It corresponds
// to cache.MetaNamespaceIndexFunc of client-go.
func ByNamespace[T api.Object](object T) []string { return []string{object.GetNamespace()} }

// Index finds objects by a value that an IndexFunc returns for them. Commit publishes it together with the objects, in
// one atomic step. It changes only when the values of an object change. All its methods are safe for concurrent use. It
// corresponds to a named index of cache.Indexer in client-go; an Index has a type instead of a name, so a typing error
// does not compile.
type Index[T api.Object, V comparable] struct {
	indexer *Indexer[T]
	slot    int // position of the index's root in Snapshot.roots
	of      IndexFunc[T, V]
	hash    func(V) uint64

	panics    atomic.Int64
	lastPanic atomic.Pointer[IndexError]

	edit indexEdit[V] // guarded by the Indexer's mu
}

// IndexError reports that an index function panicked for an object.
type IndexError struct {
	Key   api.Key
	Panic *api.PanicError
}

// Error returns one line with the key of the object and the value of the panic.
func (e *IndexError) Error() string {
	return fmt.Sprintf("cache: index function panicked for %s: %v", api.FormatKey(e.Key), e.Panic.Value)
}

// Unwrap returns Panic.
func (e *IndexError) Unwrap() error { return e.Panic }

// AddIndex adds an index to an Indexer, which may already hold objects. When AddIndex returns, the index covers all of
// them; the rest of the Indexer is unchanged. AddIndex blocks while a transaction is open. Snapshots that were taken
// earlier can be searched by the index too, but the search then looks at every object. AddIndex panics if f is nil. It
// corresponds to AddIndexers of client-go.
func AddIndex[T api.Object, V comparable](ix *Indexer[T], f IndexFunc[T, V]) *Index[T, V] {
	seed := maphash.MakeSeed()
	return addIndex(ix, f, func(v V) uint64 { return maphash.Comparable(seed, v) })
}

func addIndex[T api.Object, V comparable](ix *Indexer[T], f IndexFunc[T, V], hash func(V) uint64) *Index[T, V] {
	if f == nil {
		panic("cache: AddIndex needs an index function")
	}
	idx := &Index[T, V]{indexer: ix, of: f, hash: hash}
	if ix.attachTo != nil {
		idx.slot = ix.attachTo(idx)
	} else {
		idx.slot = ix.attach(idx)
	}
	return idx
}

// attach adds an index, which covers the present objects when attach returns. It returns the position of its root.
func (ix *Indexer[T]) attach(w indexWriter[T]) (slot int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	base := ix.current.Load()
	ix.edits++
	w.begin(nil, ix.edits)
	for leaf := range base.objects.Leaves() {
		for i := range leaf {
			w.apply(change[T]{hash: leaf[i].Hash, new: leaf[i].Item, hasNew: true})
		}
	}
	root, _ := w.commit()
	next := *base
	next.roots = append(slices.Clone(base.roots), root)
	ix.indexes = append(ix.indexes, w)
	ix.current.Store(&next)
	if ix.show != nil {
		ix.show(&next)
	}
	return len(ix.indexes) - 1
}

// ByIndex returns the objects of the current snapshot that have the value, in the order of Snapshot.All. The caller
// owns the slice; the objects are shared and must not be changed.
func (idx *Index[T, V]) ByIndex(value V) []T {
	s := idx.indexer.Snapshot()
	list := make([]T, 0, idx.find(s, value).len())
	for _, object := range idx.In(s, value) {
		list = append(list, object)
	}
	return list
}

// In yields the objects of a snapshot that have the value, with their keys, in the order of Snapshot.All. If the
// snapshot is older than the index or belongs to another Indexer, In looks at every object.
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

// yieldID yields the objects with one hash that have the value. It reports whether the loop should go on.
func (idx *Index[T, V]) yieldID(s *Snapshot[T], id uint64, value V, yield func(api.Key, T) bool) bool {
	if s.from != nil {
		return idx.yieldCopies(s, s.from.viewFind(id), value, yield)
	}
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

// yieldCopies is yieldID for the objects of a view.
func (idx *Index[T, V]) yieldCopies(s *Snapshot[T], found []api.Object, value V, yield func(api.Key, T) bool) bool {
	for _, held := range found {
		object := s.from.viewUnpack(held).(T)
		if len(found) > 1 && !idx.Has(object, value) {
			continue
		}
		if !yield(api.KeyOf(held), object) {
			return false
		}
	}
	return true
}

// scan yields the objects that have the value without using the index.
func (idx *Index[T, V]) scan(s *Snapshot[T], value V, yield func(api.Key, T) bool) {
	for key, object := range s.All() {
		if idx.Has(object, value) && !yield(key, object) {
			return
		}
	}
}

// Has reports whether the index function returns the value for an object. The object need not be in a cache.
func (idx *Index[T, V]) Has(object T, value V) bool {
	return slices.Contains(idx.valuesOf(object, nil), value)
}

// Keys returns the keys of the objects that have the value in the current snapshot, sorted by namespace and name. It
// corresponds to IndexKeys of client-go.
func (idx *Index[T, V]) Keys(value V) []api.Key {
	s := idx.indexer.Snapshot()
	p := idx.find(s, value)
	keys := make([]api.Key, 0, p.len())
	if p != nil {
		for id := range p.ids() {
			keys = idx.appendKeys(keys, s, id, value)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// appendKeys appends the keys with one hash whose objects have the value. It unpacks an object of a view only if
// another key has the same hash.
func (idx *Index[T, V]) appendKeys(keys []api.Key, s *Snapshot[T], id uint64, value V) []api.Key {
	if s.from != nil {
		if found := s.from.viewFind(id); len(found) == 1 {
			return append(keys, api.KeyOf(found[0]))
		}
	}
	idx.yieldID(s, id, value, func(key api.Key, _ T) bool {
		keys = append(keys, key)
		return true
	})
	return keys
}

// Values yields every value that an object of the current snapshot has, each once, in no particular order. It
// corresponds to ListIndexFuncValues of client-go.
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

// Len returns how many objects of the current snapshot have the value. It does not visit them.
func (idx *Index[T, V]) Len(value V) int {
	return idx.find(idx.indexer.Snapshot(), value).len()
}

// Panics returns how often the index function panicked for an object that was added. After each panic, this index left
// the object out.
func (idx *Index[T, V]) Panics() int { return int(idx.panics.Load()) }

// LastPanic returns the last of these panics, or nil if there was no panic.
func (idx *Index[T, V]) LastPanic() *IndexError { return idx.lastPanic.Load() }

// root returns the index as it was in a snapshot, and reports whether the snapshot has it.
func (idx *Index[T, V]) root(s *Snapshot[T]) (trie.Tree[posting[V]], bool) {
	if s.indexer != idx.indexer || idx.slot >= len(s.roots) {
		return trie.Tree[posting[V]]{}, false
	}
	return s.roots[idx.slot].(trie.Tree[posting[V]]), true
}

// find returns the objects that a snapshot has under a value; nil means no object.
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
