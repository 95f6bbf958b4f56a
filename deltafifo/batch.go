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
	// ResourceVersion is the version of the last change, which is the exact version of the state after this batch. It
	// is empty until the first version is known.
	ResourceVersion string
	// InitialList reports that this batch completes the first list. It is set once.
	InitialList bool
	// Resync asks for a call of the handlers for every object without a change in this batch.
	Resync bool
	// Since is the time when the first change of this batch was put in. It is also Change.At of its changes.
	Since time.Time
	// Scoped has what the batch says about scopes. It is nil unless NewScopes was called for the queue.
	Scoped *ScopedBatch
}

// ScopedBatch is what a batch says about the scopes of a queue.
type ScopedBatch struct {
	// Scopes are the scopes after the batch, with their versions.
	Scopes api.Scopes
	// Complete reports that every scope that was added before the call of Scopes.Complete has its first list, or was
	// removed. It is set once.
	Complete bool
	// Applied are closed by the consumer when it has applied the batch: see Scope.Listed and Scope.Remove.
	Applied []chan struct{}
}
