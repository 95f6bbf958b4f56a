package informer

import "time"

// ResourceEventHandler is told about the changes of a collection, one call at a time, in an order that is a legal
// history of every object: OnAdd, then OnUpdate any number of times, then OnDelete at most once.
// It corresponds to cache.ResourceEventHandler of client-go, typed. The objects are the cache's own and must not be
// changed.
type ResourceEventHandler[T any] interface {
	// OnAdd is called with an object that is new to this handler; isInInitialList says that it was there already when
	// the handler joined, or came with the first list.
	OnAdd(obj T, isInInitialList bool)
	// OnUpdate is called with the state that this handler was told last and the one that took its place. Both are the
	// same object in a resync.
	OnUpdate(oldObj, newObj T)
	// OnDelete is called with the last state known.
	OnDelete(obj DeletedObject[T])
}

// DeletedObject is an object that is gone. It takes the place of client-go's tombstones: there is always an Object, and
// nothing to unwrap.
type DeletedObject[T any] struct {
	Object T
	// FinalStateUnknown says that the deletion itself was missed: there may have been later states than Object.
	FinalStateUnknown bool
}

// HandlerFuncs is a ResourceEventHandler made of functions, any of which may be nil.
type HandlerFuncs[T any] struct {
	AddFunc    func(obj T, isInInitialList bool)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
}

// OnAdd calls AddFunc if there is one.
func (f HandlerFuncs[T]) OnAdd(obj T, isInInitialList bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc if there is one.
func (f HandlerFuncs[T]) OnUpdate(oldObj, newObj T) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc if there is one.
func (f HandlerFuncs[T]) OnDelete(obj DeletedObject[T]) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}

// Filtered returns a handler that passes on to h what keep lets through. An update that crosses the line is an addition
// or a deletion for h. keep must answer from the object alone, since it is asked again about an object's old state.
// It corresponds to cache.FilteringResourceEventHandler of client-go; keep never sees a tombstone.
func Filtered[T any](keep func(T) bool, h ResourceEventHandler[T]) ResourceEventHandler[T] {
	return filtered[T]{keep: keep, next: h}
}

type filtered[T any] struct {
	keep func(T) bool
	next ResourceEventHandler[T]
}

func (f filtered[T]) OnAdd(obj T, isInInitialList bool) {
	if f.keep(obj) {
		f.next.OnAdd(obj, isInInitialList)
	}
}

func (f filtered[T]) OnUpdate(oldObj, newObj T) {
	before, after := f.keep(oldObj), f.keep(newObj)
	switch {
	case before && after:
		f.next.OnUpdate(oldObj, newObj)
	case after:
		f.next.OnAdd(newObj, false)
	case before:
		f.next.OnDelete(DeletedObject[T]{Object: oldObj})
	}
}

func (f filtered[T]) OnDelete(obj DeletedObject[T]) {
	if f.keep(obj.Object) {
		f.next.OnDelete(obj)
	}
}

// EventType says what a Notification is about.
type EventType string

const (
	// Add is an object that is new to the handler.
	Add EventType = "Add"
	// Update is a changed object.
	Update EventType = "Update"
	// Delete is an object that is gone.
	Delete EventType = "Delete"
)

// Notification is one call of a handler as a value: what Subscribe delivers, and what ResourceEventHandler takes apart.
type Notification[T any] struct {
	Type EventType
	// Object is the new state, and the last one known in a Delete; Old is the state before an Update.
	Object, Old T
	// FinalStateUnknown says, of a Delete, that the deletion itself was missed.
	FinalStateUnknown bool
	// InitialList says, of an Add, that the object was there when the handler joined, or came with the first list.
	InitialList bool
	// Resync says, of an Update, that nothing changed: Old and Object are the same.
	Resync bool
	// At is when the informer received the change, the first one if several have coalesced; in a replay and a resync, when
	// that was due.
	At time.Time
}

// dispatch calls the method of h that n stands for.
func dispatch[T any](h ResourceEventHandler[T], n Notification[T]) {
	switch n.Type {
	case Add:
		h.OnAdd(n.Object, n.InitialList)
	case Update:
		h.OnUpdate(n.Old, n.Object)
	case Delete:
		h.OnDelete(DeletedObject[T]{Object: n.Object, FinalStateUnknown: n.FinalStateUnknown})
	}
}
