package controller

import (
	"slices"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/workqueue"
)

// clause is a disjunction of predicates, some of them negated. A source's clauses must all hold.
type clause[T any] []literal[T]

// literal is a predicate and what it has to answer.
type literal[T any] struct {
	ask  func(informer.Notification[T]) bool
	want bool
}

// delivery is one subscription of a source: what turns notifications into keys. It is called by one goroutine.
type delivery[T api.Object, K comparable] struct {
	source  InformerSource[T, K]
	sink    *Sink[K]
	scratch []K
}

// handle adds the keys that a notification stands for, each once.
func (d *delivery[T, K]) handle(n informer.Notification[T]) {
	if !d.passes(n) {
		return
	}
	keys := d.find(d.source.keys, d.scratch[:0], n)
	if d.source.left != nil && n.Type == informer.Update && !n.Resync {
		keys = d.find(d.source.left, keys, n)
	}
	if len(keys) == 0 {
		return
	}
	item := workqueue.Item{Cause: d.cause(n)}
	if n.InitialList || n.Resync {
		item.Priority = LowPriority
	}
	for _, key := range distinct(keys) {
		d.sink.Add(key, item)
	}
	clear(keys)
	if cap(keys) <= roomyScratch {
		d.scratch = keys[:0]
	}
}

// roomyScratch is the largest array that a delivery keeps for the next notification.
const roomyScratch = 64

// passes says whether every clause holds.
func (d *delivery[T, K]) passes(n informer.Notification[T]) bool {
	for _, c := range d.source.clauses {
		if !d.holds(c, n) {
			return false
		}
	}
	return true
}

func (d *delivery[T, K]) holds(c clause[T], n informer.Notification[T]) bool {
	for _, l := range c {
		if d.satisfies(l, n) {
			return true
		}
	}
	return false
}

// satisfies asks one predicate; one that panics is satisfied. Once the source is removed none is asked, and none is
// satisfied.
func (d *delivery[T, K]) satisfies(l literal[T], n informer.Notification[T]) (ok bool) {
	if d.sink.Removed() {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			d.sink.contained("predicate", api.KeyOf(n.Object), recovered(p))
			ok = true
		}
	}()
	return l.ask(n) == l.want
}

// find appends the keys that f finds; none if it panics, and once the source is removed it is not asked.
func (d *delivery[T, K]) find(f func([]K, informer.Notification[T]) []K, dst []K, n informer.Notification[T]) (keys []K) {
	if d.sink.Removed() {
		return dst
	}
	defer func() {
		if p := recover(); p != nil {
			d.sink.contained("map function", api.KeyOf(n.Object), recovered(p))
			keys = dst
		}
	}()
	return f(dst, n)
}

func (d *delivery[T, K]) cause(n informer.Notification[T]) workqueue.Cause {
	return workqueue.Cause{
		Source:  d.source.name,
		Event:   eventOf(n),
		Object:  api.FormatKey(api.KeyOf(n.Object)),
		Version: n.Object.GetResourceVersion(),
		At:      n.At,
	}
}

// The events of causes.
const (
	eventInitial = "initial" // an object that was there before the source
	eventAdd     = "add"
	eventUpdate  = "update"
	eventResync  = "resync"
	eventDelete  = "delete"
	eventRetry   = "retry"         // of a reconcile that failed
	eventRequeue = "requeue after" // as a reconcile asked for
)

func eventOf[T any](n informer.Notification[T]) string {
	switch {
	case n.Type == informer.Delete:
		return eventDelete
	case n.InitialList:
		return eventInitial
	case n.Resync:
		return eventResync
	case n.Type == informer.Update:
		return eventUpdate
	}
	return eventAdd
}

// manyKeys is from how many keys on a set finds duplicates faster than a search.
const manyKeys = 32

// distinct removes, in place, keys that stand before.
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
