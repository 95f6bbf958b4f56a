package informer

import (
	"iter"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// group is the list of notifications that result from one batch or one replay. All listeners share it, so it never
// changes after it is in a backlog. The price of a further listener is one pointer.
type group[T api.Object] struct {
	notifications []api.Change[T]

	// replay, if not nil, stands for one notification for each of its objects except those in skip. It is an Add of the
	// initial list, or an Update if resync is set. It comes before notifications.
	replay *cache.Snapshot[T]
	resync bool
	skip   map[api.Key]struct{} // a subset of replay's keys, because len counts them

	at        time.Time
	completes bool // the initial list of a listener ends with this group
}

// len returns the number of notifications.
func (g *group[T]) len() int {
	n := len(g.notifications)
	if g.replay != nil {
		n += g.replay.Len() - len(g.skip)
	}
	return n
}

// all yields the notifications in order.
func (g *group[T]) all() iter.Seq[api.Change[T]] {
	return func(yield func(api.Change[T]) bool) {
		if g.replay != nil && !g.yieldReplay(yield) {
			return
		}
		for _, n := range g.notifications {
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
