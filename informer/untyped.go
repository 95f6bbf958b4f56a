package informer

import (
	"iter"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

// Any is an Informer of any type, without the methods that depend on the type.
type Any interface {
	// Synced is closed when the cache holds the first list.
	Synced() <-chan struct{}
	// Stopped is closed when Run is ending.
	Stopped() <-chan struct{}
	// Status returns the state of the informer.
	Status() Status
	// Trace makes the informer call the functions of a trace.
	Trace(t Trace) (stop func())
	// UseLogger sets the logger if the informer has none and does not run.
	UseLogger(log *zap.Logger)
}

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
