package deltafifo

import (
	"fmt"
	"time"

	"github.com/leatproject/leat/api"
)

// DeltaType is the kind of a change, as the producer saw it. It is a byte and not a string as in client-go, because a
// first list makes a delta for every object.
type DeltaType uint8

const (
	// Added is an object that was not known.
	Added DeltaType = iota + 1
	// Updated is a new state of a known object.
	Updated
	// Deleted is the deletion of an object.
	Deleted
	// Listed is a state from a list instead of a watch: a new object, or one that has changed since the last list.
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

// Delta is one change of one object. It corresponds to cache.Delta of client-go. The tombstone and the initial list
// have fields of their own.
type Delta[T any] struct {
	// Object is the new state, or the last known state in a Deleted delta. It is never nil.
	Object T
	Type   DeltaType
	// FinalStateUnknown reports that the watch missed the deletion: the object may have had later states than Object.
	// It is set only in a Deleted delta.
	FinalStateUnknown bool
	// InitialList reports that the delta belongs to the first list.
	InitialList bool
}

// ObjectDeltas are the changes of one object since the last Pop, oldest first. There is at least one.
type ObjectDeltas[T any] struct {
	Key    api.Key
	Deltas []Delta[T]
}

// Batch has all changes since the last Pop. Its slices are valid only during the call of Pop's function, because the
// queue uses them again. The objects stay valid.
type Batch[T any] struct {
	// Objects are in the order of their first change.
	Objects []ObjectDeltas[T]
	// ResourceVersion is the version of the last change, which is the exact version of the state after this batch. It
	// is empty until the first version is known.
	ResourceVersion string
	// InitialList reports that this batch completes the first list. It is set once.
	InitialList bool
	// Resync requests another notification for every object without a delta in this batch.
	Resync bool
	// Since is the time when the first change of this batch was put in.
	Since time.Time
}
