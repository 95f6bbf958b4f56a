package cache

import (
	"sort"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trie"
)

// Txn builds the next state of an Indexer. Readers see nothing of it before Commit, and all of it afterwards. A Txn
// belongs to one goroutine at a time. Using it after its end panics; only Abort then does nothing, so that callers can
// defer it.
type Txn[T api.Object] struct {
	indexer *Indexer[T] // nil after the end
	base    *Snapshot[T]
	objects trie.Edit[T]
}

// change tells an index what it must know about a change of one object.
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

// Set stores an object and returns the object that had the same key, if any. The object becomes part of the cache and
// must not be changed from now on.
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

// Fill does the same as Set for many objects with distinct keys. Use it for the first list, when the cache is empty: it
// sorts the hashes once and allocates everything in its final size.
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
	sort.Sort(byHash[T](entries)) // adds 10 KB less to a program than slices.SortFunc
	t.objects.Fill(entries)
	for _, e := range entries {
		t.index(change[T]{hash: e.Hash, new: e.Item, hasNew: true})
	}
}

// Delete removes the object with the given key and returns it, and reports whether there was one.
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

// Commit publishes the new state and its resource version by one atomic store, and returns the new snapshot. The note
// of the snapshot before stays.
func (t *Txn[T]) Commit(resourceVersion string) *Snapshot[T] {
	t.open()
	return t.CommitWith(resourceVersion, t.base.note)
}

// CommitWith is Commit with a note, which Snapshot.Note returns.
func (t *Txn[T]) CommitWith(resourceVersion string, note any) *Snapshot[T] {
	ix := t.open()
	s := &Snapshot[T]{
		indexer: ix, objects: t.objects.Tree(), count: t.objects.Len(), version: resourceVersion, note: note, roots: t.roots(),
	}
	ix.current.Store(s)
	if ix.show != nil {
		ix.show(s)
	}
	t.end()
	return s
}

// roots returns the roots of the indexes. If no index changed, it returns the slice of the previous state.
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

// Abort drops the new state. It does nothing if the transaction has already ended.
func (t *Txn[T]) Abort() {
	if t.indexer != nil {
		for _, w := range t.indexer.indexes {
			w.abort()
		}
		t.end()
	}
}

// end clears the transaction, then releases the lock.
func (t *Txn[T]) end() {
	ix := t.indexer
	*t = Txn[T]{}
	ix.mu.Unlock()
}

func (t *Txn[T]) open() *Indexer[T] {
	if t.indexer == nil {
		panic("cache: a transaction was used after Commit or Abort; call Begin again")
	}
	return t.indexer
}

// byHash is the order of entries in a trie: by hash, and by key among equal hashes.
type byHash[T api.Object] []trie.Entry[T]

func (b byHash[T]) Len() int      { return len(b) }
func (b byHash[T]) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b byHash[T]) Less(i, j int) bool {
	if b[i].Hash != b[j].Hash {
		return b[i].Hash < b[j].Hash
	}
	return compareKeys(api.KeyOf(b[i].Item), api.KeyOf(b[j].Item)) < 0
}
