package informer

import (
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// backlog is what a listener has still to deliver. There are two kinds: one that keeps everything, and one that keeps
// the newest of every object. Both are guarded by their listener's lock until they are taken.
type backlog[T api.Object] interface {
	push(g *group[T])
	len() int
	// groups returns what there is to deliver, in order. now is the state of the cache that all of it led to. It is the
	// last thing that a backlog is asked for.
	groups(now *cache.Snapshot[T], at time.Time) []*group[T]
}

func newBacklog[T api.Object](coalesce bool) backlog[T] {
	if coalesce {
		return &coalescingBacklog[T]{slots: map[api.Key]*slot[T]{}}
	}
	return &fullBacklog[T]{}
}

// fullBacklog keeps every group as it came, but of resyncs only the oldest: a handler that has not got round to one has
// no use for another.
type fullBacklog[T api.Object] struct {
	all    []*group[T]
	n      int
	resync bool // there is one among them
}

func (b *fullBacklog[T]) push(g *group[T]) {
	if g.resync && b.resync {
		return
	}
	b.resync = b.resync || g.resync
	b.all = append(b.all, g)
	b.n += g.len()
}

func (b *fullBacklog[T]) len() int { return b.n }

func (b *fullBacklog[T]) groups(*cache.Snapshot[T], time.Time) []*group[T] { return b.all }

// coalescingBacklog keeps, for each object, at most one Delete of what the handler was told last and one Add or Update
// of the newest state. A replay that is not delivered yet absorbs every change, for it is taken from the cache as it is
// when the handler gets to it; a resync is likewise a flag.
type coalescingBacklog[T api.Object] struct {
	order    []api.Key // of first change; a key whose slot is gone is skipped
	slots    map[api.Key]*slot[T]
	initial  bool // the whole cache has still to be delivered as Adds
	resync   bool
	complete bool // the group that completes the initial list is among them
	size     int  // objects in the cache when initial or resync was set, for len
}

// slot is what a handler has still to be told of one key: a deletion, then an addition or update. Either may be nil.
type slot[T any] struct {
	deletion *Notification[T]
	newest   *Notification[T]
}

func (b *coalescingBacklog[T]) push(g *group[T]) {
	b.complete = b.complete || g.completes
	if g.replay != nil {
		b.size = g.replay.Len()
		b.resync = b.resync || g.resync
		b.initial = b.initial || !g.resync
	}
	if b.initial {
		return
	}
	for _, n := range g.notifications {
		b.add(n)
	}
}

// add merges one notification into its slot, by the table of the package's documentation. The slot gets a copy: a
// pointer into the group would keep everything else that its batch told.
func (b *coalescingBacklog[T]) add(n Notification[T]) {
	key := api.KeyOf(n.Object)
	s := b.slots[key]
	if s == nil {
		s = &slot[T]{}
		b.slots[key] = s
		b.order = append(b.order, key)
	}
	switch {
	case n.Type == Delete && (s.newest == nil || s.newest.Type == Update):
		s.deletion, s.newest = &n, nil
	case n.Type == Delete:
		s.newest = nil
	case n.Type == Update && s.newest != nil:
		n.Type, n.Old, n.At = s.newest.Type, s.newest.Old, s.newest.At
		s.newest = &n
	default:
		s.newest = &n
	}
	if s.deletion == nil && s.newest == nil {
		delete(b.slots, key)
		b.compact()
	}
}

// compact drops keys without a slot once they are the larger part, so that objects which come and go leave nothing.
// (A key that came back meanwhile stands twice; the first one counts.)
func (b *coalescingBacklog[T]) compact() {
	if len(b.order) < 64 || len(b.order) < 2*len(b.slots) {
		return
	}
	seen := make(map[api.Key]struct{}, len(b.slots))
	kept := b.order[:0]
	for _, key := range b.order {
		_, again := seen[key]
		if b.slots[key] != nil && !again {
			seen[key] = struct{}{}
			kept = append(kept, key)
		}
	}
	clear(b.order[len(kept):])
	b.order = kept
}

func (b *coalescingBacklog[T]) len() int {
	if b.initial {
		return b.size
	}
	n := len(b.slots)
	if b.resync {
		n = max(n, b.size)
	}
	return n
}

func (b *coalescingBacklog[T]) groups(now *cache.Snapshot[T], at time.Time) []*group[T] {
	var groups []*group[T]
	if b.initial {
		groups = append(groups, &group[T]{replay: now, at: at})
	}
	changes, told := b.changes(at)
	if len(changes.notifications) > 0 {
		groups = append(groups, changes)
	}
	if b.resync && !b.initial {
		groups = append(groups, &group[T]{replay: now, resync: true, skip: told, at: at})
	}
	if b.complete {
		groups = append(groups, &group[T]{at: at, completes: true})
	}
	return groups
}

// changes empties the slots into one group, and returns with it the keys that a resync need not mention.
func (b *coalescingBacklog[T]) changes(at time.Time) (*group[T], map[api.Key]struct{}) {
	g := &group[T]{at: at}
	told := map[api.Key]struct{}{}
	for _, key := range b.order {
		s := b.slots[key]
		if s == nil {
			continue
		}
		delete(b.slots, key) // it may stand in the order again
		if s.deletion != nil {
			g.notifications = append(g.notifications, *s.deletion)
		}
		if s.newest != nil {
			g.notifications = append(g.notifications, *s.newest)
			told[key] = struct{}{}
		}
	}
	return g, told
}
