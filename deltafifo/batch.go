package deltafifo

import (
	"time"

	"github.com/leatproject/leat/api"
)

// ObjectChanges are the changes of one object since the last Pop, oldest first. There is at least one.
type ObjectChanges[T any] struct {
	Key     api.Key
	Changes []api.Change[T]
}

// Batch has all changes since the last Pop. Its slices are valid only during the call of Pop's function, because the
// queue uses them again. The objects stay valid.
type Batch[T any] struct {
	// Objects are in the order of their first change.
	Objects []ObjectChanges[T]
	// ResourceVersion is the exact version of the state after this batch. It is empty until the first version is known.
	ResourceVersion string
	// InitialList reports that this batch completes the first list. It is set once.
	InitialList bool
	// Resync asks for a call of the handlers for every object without a change in this batch.
	Resync bool
	// Since is the time when the first change of this batch was put in. It is also Change.At of its changes.
	Since time.Time
	// Forgotten are objects that leave the state without a change, because another process has taken them over. The
	// consumer removes them after it has applied the changes. Only a Txn forgets objects.
	Forgotten []api.Key
	// Note is the note that the function of Annotate returned for this batch. It is nil without such a function.
	Note any
}
