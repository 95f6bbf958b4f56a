package api

import (
	"fmt"
	"reflect"
	"time"
)

// ChangeType says what a Change does to an object. It is a byte and not a string, because a first list makes a Change
// for every object.
type ChangeType uint8

const (
	// Added is an object that was not known before.
	Added ChangeType = iota + 1
	// Updated is a new state of a known object.
	Updated
	// Deleted is the end of an object.
	Deleted
)

// String returns the name of the type.
func (t ChangeType) String() string {
	switch t {
	case Added:
		return "Added"
	case Updated:
		return "Updated"
	case Deleted:
		return "Deleted"
	default:
		return fmt.Sprintf("ChangeType(%d)", uint8(t))
	}
}

// Change is one change of one object. DeltaFIFO decides its type, the informer applies it to the cache, and handlers
// get the same value. It corresponds to cache.Delta of client-go, which has no old state.
type Change[T any] struct {
	Type ChangeType
	// FinalStateUnknown reports that the watch missed the deletion: the object may have had later states than Object.
	// It is set only if Type is Deleted. client-go calls such a change a tombstone.
	FinalStateUnknown bool
	// InitialList reports that the object came with the first list, or was cached before the handler joined. It is set
	// only if Type is Added.
	InitialList bool
	// Resync reports that nothing changed: Old and Object are the same. It is set only if Type is Updated.
	Resync bool
	// Object is the new state, or the last known state if Type is Deleted. It is never nil.
	Object T
	// Old is the state before an update. It is the zero value if Type is not Updated.
	Old T
	// At is the time when the change was received. If several changes were merged, it is the time of the first. In the
	// initial list of a handler that joins late it is the time of the join, and in a resync the time when the resync
	// was due.
	At time.Time
}

// Identical reports whether a and b are the same pointer. Values that are not pointers are never identical.
func Identical[T any](a, b T) bool {
	return reflect.ValueOf(a).Kind() == reflect.Pointer && any(a) == any(b)
}
