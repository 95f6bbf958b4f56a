package cache

import (
	"iter"

	"github.com/leatproject/leat/api"
)

// Reader is what users of a cache get: objects by key, or all of them. Everything that it returns is shared with the
// cache and with all its other readers, and must not be changed; take api.Clone of an object that you want to change.
// It corresponds to the reading half of cache.Store of client-go.
type Reader[T any] interface {
	// Get returns the object with the given key, if there is one.
	Get(key api.Key) (T, bool)

	// All yields every object and its key, in an order that depends on the keys alone (see Snapshot.All). The whole loop
	// sees the state as it was when the loop began.
	All() iter.Seq2[api.Key, T]

	// List returns every object, in the order of All. The slice is the caller's, the objects are not.
	List() []T

	// Len returns the number of objects.
	Len() int
}
