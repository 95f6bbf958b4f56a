package cache

import (
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/trie"
)

// fewValues is the number of values up to which two objects are compared pair by pair. Above it, a map is cheaper.
const fewValues = 16

// indexWriter is the part of an Index that a transaction uses. It hides the type of the values.
type indexWriter[T any] interface {
	// begin begins a transaction. root is nil for a new index.
	begin(root any, edit uint64)
	apply(change[T])
	commit() (root any, changed bool)
	abort()
}

// indexEdit is the state of an index during a transaction. Only the writer uses it, under the lock of the Indexer.
type indexEdit[V comparable] struct {
	id      uint64
	before  any // the root at the start; an unchanged index reuses it and need not be boxed again
	values  trie.Edit[posting[V]]
	changed bool
	panics  int // Commit adds them to Index.panics
	last    *IndexError
}

func (idx *Index[T, V]) begin(root any, edit uint64) {
	if root == nil {
		root = trie.Tree[posting[V]]{}
	}
	idx.edit = indexEdit[V]{id: edit, before: root, values: root.(trie.Tree[posting[V]]).Edit(edit)}
}

func (idx *Index[T, V]) abort() { idx.edit = indexEdit[V]{} }

func (idx *Index[T, V]) commit() (root any, changed bool) {
	e := &idx.edit
	root, changed = e.before, e.changed
	if changed {
		root = e.values.Tree()
	}
	if e.panics > 0 {
		idx.panics.Add(int64(e.panics))
		idx.lastPanic.Store(e.last)
	}
	idx.edit = indexEdit[V]{}
	return root, changed
}

// apply moves an object from its old values to its new values. It does not touch the index if they are the same.
func (idx *Index[T, V]) apply(c change[T]) {
	var before, after []V
	if c.hadOld {
		before = idx.valuesOf(c.old, nil)
	}
	if c.hasNew {
		var failure *IndexError
		if after = idx.valuesOf(c.new, &failure); failure != nil {
			idx.edit.panics++
			idx.edit.last = failure
		}
	}
	if slices.Equal(before, after) {
		return
	}
	for _, value := range difference(after, before) {
		idx.add(value, c.hash)
	}
	for _, value := range difference(before, after) {
		idx.remove(value, c.hash)
	}
}

func (idx *Index[T, V]) add(value V, id uint64) {
	e := &idx.edit
	e.changed = true
	hash := idx.hash(value)
	entries := e.values.Find(hash)
	for i := range entries {
		if entries[i].Item.value == value {
			e.values.Replace(hash, i, entries[i].Item.with(id, e.id))
			return
		}
	}
	e.values.Insert(hash, len(entries), posting[V]{value: value, one: id})
}

func (idx *Index[T, V]) remove(value V, id uint64) {
	e := &idx.edit
	hash := idx.hash(value)
	entries := e.values.Find(hash)
	for i := range entries {
		if entries[i].Item.value != value {
			continue
		}
		e.changed = true
		if rest, any := entries[i].Item.without(id, e.id); any {
			e.values.Replace(hash, i, rest)
		} else {
			e.values.Remove(hash, i)
		}
		return
	}
}

// valuesOf calls the index function, recovers its panics, and returns each value once. After a panic it returns no
// values, and stores the reason in failure unless failure is nil.
func (idx *Index[T, V]) valuesOf(object T, failure **IndexError) (values []V) {
	defer func() {
		if r := recover(); r != nil {
			values = nil
			if failure != nil {
				*failure = &IndexError{Key: api.KeyOf(object), Panic: api.Recovered(r)}
			}
		}
	}()
	// An interface type can hold values that cannot be compared. They panic here too.
	return distinct(idx.of(object))
}

// distinct returns the values without repetitions and without values that are not equal to themselves. It does not
// write to the slice, because the index function may own it.
func distinct[V comparable](values []V) []V {
	for i, v := range values {
		if v != v || len(values) > fewValues || slices.Contains(values[:i], v) {
			return collectDistinct(values)
		}
	}
	return values
}

func collectDistinct[V comparable](values []V) []V {
	seen := make(map[V]struct{}, len(values))
	kept := make([]V, 0, len(values))
	for _, v := range values {
		if _, known := seen[v]; v == v && !known {
			seen[v] = struct{}{}
			kept = append(kept, v)
		}
	}
	return kept
}

// difference returns the values that are not among the others.
func difference[V comparable](values, others []V) []V {
	if len(values)*len(others) <= fewValues*fewValues {
		return collect(values, func(v V) bool { return !slices.Contains(others, v) })
	}
	known := make(map[V]struct{}, len(others))
	for _, v := range others {
		known[v] = struct{}{}
	}
	return collect(values, func(v V) bool {
		_, in := known[v]
		return !in
	})
}

func collect[V any](values []V, keep func(V) bool) []V {
	var kept []V
	for _, v := range values {
		if keep(v) {
			kept = append(kept, v)
		}
	}
	return kept
}
