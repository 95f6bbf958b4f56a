package controller

import (
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/workqueue"
)

// delivery is one subscription of a source. It turns changes into keys, on one goroutine at a time.
type delivery[T api.Object, K comparable] struct {
	source  InformerSource[T, K]
	sink    *Sink[K]
	scratch []K
}

func newDelivery[T api.Object, K comparable](s InformerSource[T, K], sink *Sink[K]) *delivery[T, K] {
	return &delivery[T, K]{source: s, sink: sink}
}

func describe[T api.Object](n api.Change[T]) string {
	return api.FormatKey(api.KeyOf(n.Object))
}

// handle adds the keys of a change, each once.
func (d *delivery[T, K]) handle(n api.Change[T]) {
	if !d.passes(n) {
		return
	}
	keys := d.find(d.source.keys, d.scratch[:0], n)
	if d.source.left != nil && n.Type == api.Updated && !n.Resync {
		keys = d.find(d.source.left, keys, n)
	}
	if len(keys) == 0 {
		return
	}
	item := workqueue.Item{Cause: d.cause(n), Priority: priority(n)}
	for _, key := range distinct(keys) {
		d.sink.Add(key, item)
	}
	clear(keys)
	if cap(keys) <= roomyScratch {
		d.scratch = keys[:0]
	}
}

// priority returns the priority of a change: low if the object is unchanged.
func priority[T api.Object](n api.Change[T]) int {
	if n.InitialList || n.Resync || isUnchanged(n) {
		return LowPriority
	}
	return 0
}

// isUnchanged reports whether an update has the same resource version as the old state. A list brings such updates if
// the informer does not compare its objects with the known ones.
func isUnchanged[T api.Object](n api.Change[T]) bool {
	return n.Type == api.Updated && n.Object.GetResourceVersion() != "" &&
		n.Old.GetResourceVersion() == n.Object.GetResourceVersion()
}

// roomyScratch is the largest array that a delivery keeps for the next change.
const roomyScratch = 64

// find appends the keys that f returns. It appends no keys if f panics, and does not call f if the source was removed.
func (d *delivery[T, K]) find(f func([]K, api.Change[T]) []K, dst []K, n api.Change[T]) (keys []K) {
	if d.sink.Removed() {
		return dst
	}
	defer func() {
		if p := recover(); p != nil {
			d.sink.contained("map function", describe(n), api.Recovered(p))
			keys = dst
		}
	}()
	return f(dst, n)
}

func (d *delivery[T, K]) cause(n api.Change[T]) workqueue.Cause {
	return workqueue.Cause{
		Source:  d.source.name,
		Event:   eventOf(n),
		Object:  api.FormatKey(api.KeyOf(n.Object)),
		Version: n.Object.GetResourceVersion(),
		At:      n.At,
	}
}

// These are the events in causes.
const (
	eventInitial = "initial" // an object that existed before the source
	eventAdd     = "add"
	eventUpdate  = "update"
	eventResync  = "resync"
	eventDelete  = "delete"
	eventRequest = "request"       // of a source that gives no cause
	eventRetry   = "retry"         // after a failed reconcile
	eventRequeue = "requeue after" // after Result.RequeueAfter
)

func eventOf[T any](n api.Change[T]) string {
	switch {
	case n.Type == api.Deleted:
		return eventDelete
	case n.InitialList:
		return eventInitial
	case n.Resync:
		return eventResync
	case n.Type == api.Updated:
		return eventUpdate
	}
	return eventAdd
}

// manyKeys is the number of keys above which a set finds duplicates faster than a search.
const manyKeys = 32

// distinct removes repeated keys in place.
func distinct[K comparable](keys []K) []K {
	if len(keys) < 2 {
		return keys
	}
	kept := keys[:0]
	if len(keys) < manyKeys {
		for _, key := range keys {
			if !slices.Contains(kept, key) {
				kept = append(kept, key)
			}
		}
		return kept
	}
	seen := make(map[K]struct{}, len(keys))
	for _, key := range keys {
		if _, again := seen[key]; !again {
			seen[key] = struct{}{}
			kept = append(kept, key)
		}
	}
	return kept
}
