package informer

import (
	"iter"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// group is a list of changes: those of one batch, or of one replay. All listeners share it, so it is not modified after
// it is in a backlog. The price of a further listener is one pointer.
type group[T api.Object] struct {
	changes []api.Change[T]

	// replay, if not nil, stands for one change for each of its objects except those in skip. It is an Added of the
	// initial list, or an Updated if resync is set. It comes before changes.
	replay *cache.Snapshot[T]
	resync bool
	skip   map[api.Key]struct{} // a subset of replay's keys, because len counts them

	at        time.Time
	completes bool // the initial list of a listener ends with this group
}

// len returns the number of changes.
func (g *group[T]) len() int {
	n := len(g.changes)
	if g.replay != nil {
		n += g.replay.Len() - len(g.skip)
	}
	return n
}

// all yields the changes in order.
func (g *group[T]) all() iter.Seq[api.Change[T]] {
	return func(yield func(api.Change[T]) bool) {
		if g.replay != nil && !g.yieldReplay(yield) {
			return
		}
		for _, n := range g.changes {
			if !yield(n) {
				return
			}
		}
	}
}

func (g *group[T]) yieldReplay(yield func(api.Change[T]) bool) bool {
	for key, object := range g.replay.All() {
		if _, skip := g.skip[key]; skip {
			continue
		}
		n := api.Change[T]{Type: api.Added, Object: object, InitialList: true, At: g.at}
		if g.resync {
			n = api.Change[T]{Type: api.Updated, Object: object, Old: object, Resync: true, At: g.at}
		}
		if !yield(n) {
			return false
		}
	}
	return true
}
