package informer

import (
	"iter"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// ObserveChanges calls f with every later change of the objects for whose keys wanted returns true, when the change is
// in the cache. Resyncs are not changes. The next batch waits for both functions. The objects are those of the cache
// and must not be changed. The returned function ends the calls. It is for programs that show objects of any type; a
// handler gets the same changes with their type, and a replay.
func (i *Informer[T]) ObserveChanges(wanted func(api.Key) bool, f func(api.Change[api.Object])) (stop func()) {
	if i.held != nil {
		return i.held.heldObserveChanges(wanted, f)
	}
	return i.observeChanges(wanted, func(c api.Change[T]) { f(widen(c)) })
}

func (i *Informer[T]) observeChanges(wanted func(api.Key) bool, f func(api.Change[T])) (stop func()) {
	return i.changes.Add(func(b deltafifo.Batch[T]) {
		for _, object := range b.Objects {
			if !wanted(object.Key) {
				continue
			}
			for _, c := range object.Changes {
				f(c)
			}
		}
	})
}

func (v view[T, H]) heldObserveChanges(wanted func(api.Key) bool, f func(api.Change[api.Object])) (stop func()) {
	return v.observeChanges(wanted, func(c api.Change[H]) { f(widen(showChange(c, v.form.Share))) })
}

// widen returns a change without the type of its object.
func widen[T api.Object](c api.Change[T]) api.Change[api.Object] {
	wide := api.Change[api.Object]{
		Type: c.Type, FinalStateUnknown: c.FinalStateUnknown, InitialList: c.InitialList, Resync: c.Resync, At: c.At, Object: c.Object,
	}
	if c.Type == api.Updated {
		wide.Old = c.Old
	}
	return wide
}

// Lookup returns the cached object with a key, without its type, and reports whether there is one.
func (i *Informer[T]) Lookup(key api.Key) (api.Object, bool) {
	object, ok := i.Cache().Get(key)
	if !ok {
		return nil, false
	}
	return object, true
}

// Keys yields the keys of the cached objects. The whole loop sees the state at its start.
func (i *Informer[T]) Keys() iter.Seq[api.Key] { return i.Snapshot().Keys() }
