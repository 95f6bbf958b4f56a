package deltafifo

import (
	"cmp"
	"sort"

	"github.com/leatproject/leat/api"
)

// Replace records a whole list and its version. An object that is the very pointer that the queue knows makes no
// change, so a producer passes the known pointer for each object that has not changed. A known object that is not in
// the list is deleted, with an unknown final state. Deletions come first, ordered by key; changes follow in the order
// of the list. Only the producer may call it.
func (q *DeltaFIFO[T]) Replace(list []T, version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.generation++
	if !q.listed {
		q.listed, q.initial = true, true
	}
	if len(q.known) == 0 {
		q.known = make(map[api.Key]knownObject[T], len(list))
		if q.initial || len(list) > maxKept { // the buffer is not used again
			q.buffer.grow(len(list))
		}
	}
	q.dropMissing(list)
	for _, object := range list {
		if !q.isKnown(object) {
			q.put(object, q.initial)
		}
	}
	q.version = version
	q.markDirty()
	q.signal()
}

// dropMissing deletes the known objects that are not in the list. It marks objects of the list with the number of this
// Replace, so that a list without changes needs no set of keys.
func (q *DeltaFIFO[T]) dropMissing(list []T) {
	kept := 0
	for _, object := range list {
		key := api.KeyOf(object)
		if k, ok := q.known[key]; ok && k.generation != q.generation {
			k.generation = q.generation
			q.known[key] = k
			kept++
		}
	}
	if kept == len(q.known) {
		return
	}
	var missing []api.Key
	for key, k := range q.known {
		if k.generation != q.generation {
			missing = append(missing, key)
		}
	}
	// sort.Slice is slower than slices.SortFunc, and adds 10 KB less to a program.
	sort.Slice(missing, func(i, j int) bool { return compareKeys(missing[i], missing[j]) < 0 })
	for _, key := range missing {
		k := q.known[key]
		q.recordDeletion(key, k, k.object, true)
	}
}

// isKnown reports whether the queue has this very object, and not only one with the same key.
func (q *DeltaFIFO[T]) isKnown(object T) bool {
	k, ok := q.known[api.KeyOf(object)]
	return ok && api.Identical(k.object, object)
}

func compareKeys(a, b api.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
