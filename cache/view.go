package cache

import (
	"github.com/leatproject/leat/api"
)

// View returns an Indexer that shows the objects of another one as T. It is only for reading: the writer uses held. An
// Indexer has at most one view.
//
// Each read calls unpack for each object that it returns, and the caller owns the result. Index functions get the
// result of share, which may be the same one for several calls, because they change nothing. Both functions must return
// equal objects with the key, UID and version of their argument, and must be safe for concurrent use.
func View[T, H api.Object](held *Indexer[H], unpack, share func(H) T) *Indexer[T] {
	ix, v := &Indexer[T]{}, &view[T, H]{unpack, share}
	ix.attachTo = func(writer any) int {
		return held.attach(viewWriter[T, H]{writer.(indexWriter[T]), share})
	}
	show := func(s *Snapshot[H]) {
		ix.current.Store(&Snapshot[T]{indexer: ix, count: s.count, version: s.version, note: s.note, roots: s.roots, from: viewed[T, H]{s, v}})
	}
	held.mu.Lock()
	defer held.mu.Unlock()
	held.show = show
	show(held.Snapshot())
	return ix
}

// contents is the snapshot behind a snapshot of a view. It has no type parameter, because a program contains the types
// of a generic interface once more for each T. The objects are those of the other Indexer.
type contents interface {
	viewKey(key api.Key) api.Object // nil if there is no object
	viewAll() []api.Object
	// viewFind returns the objects whose keys have a hash.
	viewFind(hash uint64) []api.Object
	// viewUnpack returns an object as a T, and nil for nil.
	viewUnpack(held api.Object) any
}

type view[T, H api.Object] struct{ unpack, share func(H) T }

// viewed is a snapshot behind a snapshot of a view.
type viewed[T, H api.Object] struct {
	held *Snapshot[H]
	view *view[T, H]
}

func (v viewed[T, H]) viewKey(key api.Key) api.Object {
	if held, found := v.held.Get(key); found {
		return held
	}
	return nil
}

func (v viewed[T, H]) viewAll() []api.Object {
	all := make([]api.Object, 0, v.held.count)
	for _, held := range v.held.each {
		all = append(all, held)
	}
	return all
}

func (v viewed[T, H]) viewFind(hash uint64) []api.Object {
	var found []api.Object
	for _, e := range v.held.objects.Find(hash) {
		found = append(found, e.Item)
	}
	return found
}

func (v viewed[T, H]) viewUnpack(held api.Object) any {
	if held == nil {
		return nil
	}
	return v.view.unpack(held.(H))
}

// viewWriter is an index over T that is part of the transactions of H.
type viewWriter[T, H api.Object] struct {
	indexWriter[T]
	share func(H) T
}

func (w viewWriter[T, H]) apply(c change[H]) {
	shown := change[T]{hash: c.hash, hadOld: c.hadOld, hasNew: c.hasNew}
	if c.hadOld {
		shown.old = w.share(c.old)
	}
	if c.hasNew {
		shown.new = w.share(c.new)
	}
	w.indexWriter.apply(shown)
}
