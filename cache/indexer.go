package cache

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trie"
)

// Indexer holds the objects of one collection and the indexes over them. Readers see whole versions and never wait. One
// writer at a time prepares the next version in a Txn. It corresponds to cache.Indexer of client-go, which protects a
// map and its indexes by one lock.
type Indexer[T api.Object] struct {
	current atomic.Pointer[Snapshot[T]]
	hash    func(api.Key) uint64
	// attachTo adds an index to the Indexer behind a view; otherwise it is nil. The argument is an indexWriter[T].
	attachTo func(writer any) (slot int)

	mu      sync.Mutex // the writer holds it from Begin to Commit or Abort; guards the fields below
	edits   uint64     // number of transactions so far; each has its own id
	indexes []indexWriter[T]
	show    func(*Snapshot[T]) // publishes a snapshot in the view; nil without one
}

// New returns an empty Indexer.
func New[T api.Object]() *Indexer[T] {
	return newIndexer[T](hashKey)
}

func newIndexer[T api.Object](hash func(api.Key) uint64) *Indexer[T] {
	ix := &Indexer[T]{hash: hash}
	ix.current.Store(&Snapshot[T]{indexer: ix})
	return ix
}

// Snapshot returns the state that was published last. It costs one atomic load.
func (ix *Indexer[T]) Snapshot() *Snapshot[T] { return ix.current.Load() }

// Get returns the object with the given key, and reports whether there is one.
func (ix *Indexer[T]) Get(key api.Key) (T, bool) { return ix.Snapshot().Get(key) }

// All yields every object of the current snapshot; see Snapshot.All.
func (ix *Indexer[T]) All() iter.Seq2[api.Key, T] {
	return func(yield func(api.Key, T) bool) { ix.Snapshot().each(yield) }
}

// List returns every object of the current snapshot.
func (ix *Indexer[T]) List() []T { return ix.Snapshot().List() }

// Len returns the number of objects of the current snapshot.
func (ix *Indexer[T]) Len() int { return ix.Snapshot().Len() }

// ResourceVersion returns the version of the current snapshot.
func (ix *Indexer[T]) ResourceVersion() string { return ix.Snapshot().ResourceVersion() }

// Begin opens a transaction. It blocks while another one is open. The caller must end the transaction with Commit or
// Abort, on any goroutine; until then no other transaction can begin, and AddIndex waits. It corresponds to the
// Transaction method of client-go's TransactionStore, which takes all changes at once.
func (ix *Indexer[T]) Begin() *Txn[T] {
	ix.mu.Lock()
	ix.edits++
	base := ix.current.Load()
	for i, w := range ix.indexes {
		w.begin(base.roots[i], ix.edits)
	}
	return &Txn[T]{indexer: ix, base: base, objects: base.objects.Edit(ix.edits)}
}

// position finds a key among the entries of one hash, which are ordered by key. It returns the index of the key, or the
// index where the key belongs.
func position[T api.Object](entries []trie.Entry[T], key api.Key) (at int, found bool) {
	if len(entries) == 1 && api.KeyOf(entries[0].Item) == key {
		return 0, true // the usual case: no collision
	}
	from, to := 0, len(entries)
	for from < to {
		middle := int(uint(from+to) >> 1)
		switch c := compareKeys(api.KeyOf(entries[middle].Item), key); {
		case c == 0:
			return middle, true
		case c < 0:
			from = middle + 1
		default:
			to = middle
		}
	}
	return from, false
}
