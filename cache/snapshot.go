package cache

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trie"
)

// Snapshot is one published state of an Indexer: its objects, their resource version and the indexes. It never changes
// and stays valid as long as it is held. Its price is the memory of the objects that have changed since. It implements
// Reader. client-go has nothing like it.
type Snapshot[T api.Object] struct {
	indexer *Indexer[T]
	objects trie.Tree[T]
	count   int
	version string
	note    any
	roots   []any    // of the indexes at that time, each a trie.Tree of its value type
	from    contents // of a view, which has no objects of its own; otherwise nil
}

// ResourceVersion returns the resource version of the collection at this snapshot, "" before the first commit. It
// corresponds to LastStoreSyncResourceVersion of client-go.
func (s *Snapshot[T]) ResourceVersion() string { return s.version }

// Note returns what the writer has added to the snapshot with CommitWith, or nil. Package scopes adds the version of
// each scope.
func (s *Snapshot[T]) Note() any { return s.note }

// Get returns the object with the given key, and reports whether there is one. It does not allocate, except in a View.
func (s *Snapshot[T]) Get(key api.Key) (T, bool) {
	if s.from != nil {
		object, found := s.from.viewUnpack(s.from.viewKey(key)).(T)
		return object, found
	}
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
	if s.from != nil {
		for _, held := range s.from.viewAll() {
			if !yield(api.KeyOf(held), s.from.viewUnpack(held).(T)) {
				return
			}
		}
		return
	}
	for leaf := range s.objects.Leaves() {
		for i := range leaf {
			if !yield(api.KeyOf(leaf[i].Item), leaf[i].Item) {
				return
			}
		}
	}
}

// Keys yields every key, in the order of All. It costs less than All for a View, because it unpacks no object.
func (s *Snapshot[T]) Keys() iter.Seq[api.Key] {
	return func(yield func(api.Key) bool) {
		if s.from == nil {
			for key := range s.each {
				if !yield(key) {
					return
				}
			}
			return
		}
		for _, held := range s.from.viewAll() {
			if !yield(api.KeyOf(held)) {
				return
			}
		}
	}
}

// List returns every object, in the order of All. The caller owns the slice; the objects are shared and must not be
// changed.
func (s *Snapshot[T]) List() []T {
	list := make([]T, 0, s.count)
	for _, object := range s.each {
		list = append(list, object)
	}
	return list
}

// Len returns the number of objects.
func (s *Snapshot[T]) Len() int { return s.count }

// Copies reports whether the objects that the snapshot returns are copies, which the caller owns. Otherwise they are
// shared and must not be changed.
func (s *Snapshot[T]) Copies() bool { return s.from != nil }

// Identity returns the UID and the resource version of the object with the given key, and reports whether there is one.
func (s *Snapshot[T]) Identity(key api.Key) (uid types.UID, resourceVersion string, found bool) {
	var object api.Object
	if s.from != nil {
		object = s.from.viewKey(key)
	} else if whole, ok := s.Get(key); ok {
		object = whole
	}
	if object == nil {
		return "", "", false
	}
	return object.GetUID(), object.GetResourceVersion(), true
}
