package cache

import (
	"iter"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trie"
)

// Snapshot is one published state of an Indexer: its objects, the resource version that they are of, and its indexes.
// It never changes and stays valid for as long as it is held; what it costs is the memory of what has changed since.
// It implements Reader. client-go has nothing like it.
type Snapshot[T api.Object] struct {
	indexer *Indexer[T]
	objects trie.Tree[T]
	version string
	roots   []any // of the indexes that there were, each a trie.Tree of its value type
}

// ResourceVersion returns the version of the collection that this is the state of, empty before anything was committed.
// It corresponds to LastStoreSyncResourceVersion of client-go.
func (s *Snapshot[T]) ResourceVersion() string { return s.version }

// Get returns the object with the given key, if there is one. It does not allocate.
func (s *Snapshot[T]) Get(key api.Key) (T, bool) {
	entries := s.objects.Find(s.indexer.hash(key))
	if at, found := position(entries, key); found {
		return entries[at].Item, true
	}
	var none T
	return none, false
}

// All yields every object and its key in ascending order of a fixed hash of the key. So the order depends on the keys
// that there are and on nothing else: neither on the history, nor on the process, nor on the platform.
func (s *Snapshot[T]) All() iter.Seq2[api.Key, T] { return s.each }

func (s *Snapshot[T]) each(yield func(api.Key, T) bool) {
	for leaf := range s.objects.Leaves() {
		for i := range leaf {
			if !yield(api.KeyOf(leaf[i].Item), leaf[i].Item) {
				return
			}
		}
	}
}

// List returns every object, in the order of All. The slice is the caller's, the objects are shared.
func (s *Snapshot[T]) List() []T {
	list := make([]T, 0, s.objects.Len())
	for leaf := range s.objects.Leaves() {
		for i := range leaf {
			list = append(list, leaf[i].Item)
		}
	}
	return list
}

// Len returns the number of objects.
func (s *Snapshot[T]) Len() int { return s.objects.Len() }
