package cache

import (
	"cmp"
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trie"
)

// Txn is the next state of an Indexer in the making. Nobody else sees any of it before Commit, and then all of it at
// once. It is for one goroutine at a time. To use it after it has ended panics, except that Abort then does nothing, so
// that it can be deferred.
type Txn[T api.Object] struct {
	indexer *Indexer[T] // nil once it has ended
	base    *Snapshot[T]
	objects trie.Edit[T]
}

// change is what an index has to know of a change to one object.
type change[T any] struct {
	hash           uint64
	old, new       T
	hadOld, hasNew bool
}

// Get returns the object with the given key as it will be after the commit.
func (t *Txn[T]) Get(key api.Key) (T, bool) {
	entries := t.objects.Find(t.open().hash(key))
	if at, found := position(entries, key); found {
		return entries[at].Item, true
	}
	var none T
	return none, false
}

// Len returns the number of objects that there will be after the commit.
func (t *Txn[T]) Len() int {
	t.open()
	return t.objects.Len()
}

// Set puts an object in, in the place of any that has its key, and returns that one. The object becomes part of the
// cache: nobody may change it any more.
func (t *Txn[T]) Set(object T) (old T, existed bool) {
	key := api.KeyOf(object)
	hash := t.open().hash(key)
	entries := t.objects.Find(hash)
	at, existed := position(entries, key)
	if existed {
		old = entries[at].Item
		t.objects.Replace(hash, at, object)
	} else {
		t.objects.Insert(hash, at, object)
	}
	t.index(change[T]{hash: hash, old: old, new: object, hadOld: existed, hasNew: true})
	return old, existed
}

// Fill is Set for many objects, no two of one key. It is for the first list, when there is nothing to replace and nobody
// to be told of it: all places are found by sorting once, and nothing is made that grows.
func (t *Txn[T]) Fill(objects []T) {
	ix := t.open()
	if t.objects.Len() > 0 {
		for _, object := range objects {
			t.Set(object)
		}
		return
	}
	entries := make([]trie.Entry[T], len(objects))
	for i, object := range objects {
		entries[i] = trie.Entry[T]{Item: object, Hash: ix.hash(api.KeyOf(object))}
	}
	slices.SortFunc(entries, func(a, b trie.Entry[T]) int {
		if a.Hash != b.Hash {
			return cmp.Compare(a.Hash, b.Hash)
		}
		return compareKeys(api.KeyOf(a.Item), api.KeyOf(b.Item))
	})
	t.objects.Fill(entries)
	for _, e := range entries {
		t.index(change[T]{hash: e.Hash, new: e.Item, hasNew: true})
	}
}

// Delete takes out the object with the given key, if there is one, and returns it.
func (t *Txn[T]) Delete(key api.Key) (old T, existed bool) {
	hash := t.open().hash(key)
	entries := t.objects.Find(hash)
	at, existed := position(entries, key)
	if !existed {
		return old, false
	}
	old = entries[at].Item
	t.objects.Remove(hash, at)
	t.index(change[T]{hash: hash, old: old, hadOld: true})
	return old, true
}

func (t *Txn[T]) index(c change[T]) {
	for _, w := range t.indexer.indexes {
		w.apply(c)
	}
}

// Commit publishes the new state, with the resource version that it is of, by one atomic store, and returns it.
func (t *Txn[T]) Commit(resourceVersion string) *Snapshot[T] {
	ix := t.open()
	s := &Snapshot[T]{indexer: ix, objects: t.objects.Tree(), version: resourceVersion, roots: t.roots()}
	ix.current.Store(s)
	t.end()
	return s
}

// roots returns the roots of the indexes: the very slice of the state before if no index changed.
func (t *Txn[T]) roots() []any {
	roots, shared := t.base.roots, true
	for i, w := range t.indexer.indexes {
		root, changed := w.commit()
		if !changed {
			continue
		}
		if shared {
			roots, shared = append([]any(nil), roots...), false
		}
		roots[i] = root
	}
	return roots
}

// Abort drops the new state. It does nothing to a transaction that has ended.
func (t *Txn[T]) Abort() {
	if t.indexer != nil {
		for _, w := range t.indexer.indexes {
			w.abort()
		}
		t.end()
	}
}

// end lets go of what the transaction holds, and then of the lock.
func (t *Txn[T]) end() {
	ix := t.indexer
	*t = Txn[T]{}
	ix.mu.Unlock()
}

func (t *Txn[T]) open() *Indexer[T] {
	if t.indexer == nil {
		panic("cache: a transaction was used after Commit or Abort; begin another one")
	}
	return t.indexer
}
