package informer

import "github.com/leatproject/leat/api"

// ResourceEventHandler receives the changes of a collection, one call at a time. Each object has a legal history:
// OnAdd, then OnUpdate any number of times, then OnDelete at most once. The objects are those of the cache and must not
// be changed. It corresponds to cache.ResourceEventHandler of client-go, with types.
type ResourceEventHandler[T any] interface {
	// OnAdd is called with an object that is new to this handler. isInInitialList reports that the object came with the
	// first list, or was cached before the handler joined.
	OnAdd(obj T, isInInitialList bool)
	// OnUpdate is called with the state that this handler got last and the new state. Both are the same object in a
	// resync.
	OnUpdate(oldObj, newObj T)
	// OnDelete is called with the last known state.
	OnDelete(obj DeletedObject[T])
}

// DeletedObject is an object that was deleted. It replaces client-go's tombstones: Object is always set, and nothing
// has to be unwrapped.
type DeletedObject[T any] struct {
	Object T
	// FinalStateUnknown reports that the watch missed the deletion: the object may have had later states than Object.
	FinalStateUnknown bool
}

// HandlerFuncs is a ResourceEventHandler made of functions. Each of them may be nil.
type HandlerFuncs[T any] struct {
	AddFunc    func(obj T, isInInitialList bool)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
}

// OnAdd calls AddFunc if it is set.
func (f HandlerFuncs[T]) OnAdd(obj T, isInInitialList bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc if it is set.
func (f HandlerFuncs[T]) OnUpdate(oldObj, newObj T) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc if it is set.
func (f HandlerFuncs[T]) OnDelete(obj DeletedObject[T]) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}

// Filtered returns a handler that passes to h only the objects for which keep returns true. If an update changes the
// result of keep, h gets an addition or a deletion. The result of keep must depend only on the object, because keep is
// called again for the old state in an update. It corresponds to cache.FilteringResourceEventHandler of client-go; keep
// never gets a tombstone.
func Filtered[T any](keep func(T) bool, h ResourceEventHandler[T]) ResourceEventHandler[T] {
	return HandlerFuncs[T]{
		AddFunc: func(obj T, isInInitialList bool) {
			if keep(obj) {
				h.OnAdd(obj, isInInitialList)
			}
		},
		UpdateFunc: func(oldObj, newObj T) {
			switch before, after := keep(oldObj), keep(newObj); {
			case before && after:
				h.OnUpdate(oldObj, newObj)
			case after:
				h.OnAdd(newObj, false)
			case before:
				h.OnDelete(DeletedObject[T]{Object: oldObj})
			}
		},
		DeleteFunc: func(obj DeletedObject[T]) {
			if keep(obj.Object) {
				h.OnDelete(obj)
			}
		},
	}
}

// dispatch calls the method of h for a change.
func dispatch[T any](h ResourceEventHandler[T], c api.Change[T]) {
	switch c.Type {
	case api.Added:
		h.OnAdd(c.Object, c.InitialList)
	case api.Updated:
		h.OnUpdate(c.Old, c.Object)
	case api.Deleted:
		h.OnDelete(DeletedObject[T]{Object: c.Object, FinalStateUnknown: c.FinalStateUnknown})
	}
}
