package cache

import (
	"hash/maphash"

	"github.com/leatproject/leat/api"
)

// NewWithHash returns an Indexer that uses the given hash, so that a test can make keys collide.
func NewWithHash[T api.Object](hash func(api.Key) uint64) *Indexer[T] { return newIndexer[T](hash) }

// AddIndexWithMask adds an index that uses only some bits of the hashes of its values.
func AddIndexWithMask[T api.Object, V comparable](ix *Indexer[T], f IndexFunc[T, V], mask uint64) *Index[T, V] {
	seed := maphash.MakeSeed()
	return addIndex(ix, f, func(v V) uint64 { return maphash.Comparable(seed, v) & mask })
}

// HashKey is the hash that decides the order of a snapshot.
var HashKey = hashKey

// Roots returns the roots of the indexes of a snapshot. They can be compared with ==.
func (s *Snapshot[T]) Roots() []any { return s.roots }

// Len returns the number of objects that there will be after the commit.
func (t *Txn[T]) Len() int {
	t.open()
	return t.objects.Len()
}
