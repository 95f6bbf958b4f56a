package cache

import (
	"iter"

	"github.com/leatproject/leat/api"
)

// Reader is the read access to a cache: objects by key, or all of them. All objects that it returns are shared with the
// cache and its other readers, and must not be changed; change a copy that api.Clone returns. It corresponds to the
// reading half of cache.Store of client-go.
type Reader[T any] interface {
	// Get returns the object with the given key, and reports whether there is one.
	Get(key api.Key) (T, bool)

	// All yields every object and its key, in an order that depends only on the keys (see Snapshot.All). The whole loop
	// sees the state at its start.
	All() iter.Seq2[api.Key, T]

	// List returns every object, in the order of All. The caller owns the slice; the objects are shared and must not be
	// changed.
	List() []T

	// Len returns the number of objects.
	Len() int
}
