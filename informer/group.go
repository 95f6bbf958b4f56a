package informer

import (
	"iter"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// group is what one batch, or one replay, has to tell. It is immutable once it is in a backlog, and every listener
// shares it: fan-out costs one pointer a listener.
type group[T api.Object] struct {
	notifications []Notification[T]

	// replay, if not nil, stands for one notification about each of its objects but those in skip: an Add of the
	// initial list, or an Update if resync is set. It comes before notifications.
	replay *cache.Snapshot[T]
	resync bool
	skip   map[api.Key]struct{} // all of them are in replay, for len

	at        time.Time
	completes bool // a listener that has delivered this has delivered its initial list
}

// len is how many notifications there are.
func (g *group[T]) len() int {
	n := len(g.notifications)
	if g.replay != nil {
		n += g.replay.Len() - len(g.skip)
	}
	return n
}

// all yields the notifications, in order.
func (g *group[T]) all() iter.Seq[Notification[T]] {
	return func(yield func(Notification[T]) bool) {
		if g.replay != nil && !g.replayed(yield) {
			return
		}
		for _, n := range g.notifications {
			if !yield(n) {
				return
			}
		}
	}
}

func (g *group[T]) replayed(yield func(Notification[T]) bool) bool {
	for key, object := range g.replay.All() {
		if _, skip := g.skip[key]; skip {
			continue
		}
		n := Notification[T]{Type: Add, Object: object, InitialList: true, At: g.at}
		if g.resync {
			n = Notification[T]{Type: Update, Object: object, Old: object, Resync: true, At: g.at}
		}
		if !yield(n) {
			return false
		}
	}
	return true
}
