package cache

import (
	"iter"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trie"
)

// Snapshot is one published state of an Indexer: its objects, their resource version and the indexes. It never changes
// and stays valid as long as it is held. Its price is the memory of the objects that have changed since. It implements
// Reader. client-go has nothing like it.
type Snapshot[T api.Object] struct {
	indexer *Indexer[T]
	objects trie.Tree[T]
	version string
	roots   []any // of the indexes at that time, each a trie.Tree of its value type
}

// ResourceVersion returns the resource version of the collection at this snapshot, "" before the first commit. It
// corresponds to LastStoreSyncResourceVersion of client-go.
func (s *Snapshot[T]) ResourceVersion() string { return s.version }

// Get returns the object with the given key, and reports whether there is one. It does not allocate.
func (s *Snapshot[T]) Get(key api.Key) (T, bool) {
	entries := s.objects.Find(s.indexer.hash(key))
	if at, found := position(entries, key); found {
		return entries[at].Item, true
	}
	var none T
	return none, false
}

// All yields every object and its key, in ascending order of a fixed hash of the key. The order depends only on the
// keys that exist: not on the history, the process or the platform.
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

// List returns every object, in the order of All. The caller owns the slice; the objects are shared and must not be
// changed.
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
