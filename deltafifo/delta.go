package deltafifo

import (
	"fmt"
	"time"

	"github.com/leatproject/leat/api"
)

// DeltaType says what happened to an object, as the producer saw it. It is a byte, and no string as in client-go: a
// first list puts in a delta for every object there is.
type DeltaType uint8

const (
	// Added is an object that the producer did not know.
	Added DeltaType = iota + 1
	// Updated is a new state of an object that the producer knew.
	Updated
	// Deleted is the end of an object.
	Deleted
	// Listed is a state that came with a list and not with a watch: new to the producer, or changed since it looked.
	Listed
)

// String returns the name of the type.
func (t DeltaType) String() string {
	switch t {
	case Added:
		return "Added"
	case Updated:
		return "Updated"
	case Deleted:
		return "Deleted"
	case Listed:
		return "Listed"
	default:
		return fmt.Sprintf("DeltaType(%d)", uint8(t))
	}
}

// Delta is one change of one object.
// It corresponds to cache.Delta of client-go, with the tombstone and the initial-list flag in fields of their own.
type Delta[T any] struct {
	// Object is the new state, and in a Deleted delta the last one that was seen. It is never nil.
	Object T
	Type   DeltaType
	// FinalStateUnknown says, of a Deleted delta, that the deletion itself was missed: Object is the last state known,
	// and there may have been later ones.
	FinalStateUnknown bool
	// InitialList says that the delta belongs to the first list.
	InitialList bool
}

// ObjectDeltas is what happened to one object since the last Pop, oldest first. There is always at least one delta.
type ObjectDeltas[T any] struct {
	Key    api.Key
	Deltas []Delta[T]
}

// Batch is everything that happened since the last Pop. It is lent to the callback of Pop, and its slices must not be
// kept when that returns; the objects in it may.
type Batch[T any] struct {
	// Objects are in the order of their first change.
	Objects []ObjectDeltas[T]
	// ResourceVersion is that of the last change put in, and so the exact version of the state after this batch. It is
	// empty as long as no version was ever seen.
	ResourceVersion string
	// InitialList says that the first list is complete with this batch. It is set once.
	InitialList bool
	// Resync asks that every object which has no delta here be announced once more.
	Resync bool
	// Since is when the first change of this batch was put in.
	Since time.Time
}
