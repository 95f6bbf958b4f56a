package informer

import (
	"iter"

	"github.com/leatproject/leat/api"
)

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
