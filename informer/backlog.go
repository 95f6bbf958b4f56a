package informer

import (
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// backlog is what a listener has still to deliver. There are two kinds: one that keeps everything, and one that keeps
// the newest of every object. Both are guarded by their listener's lock.
type backlog[T api.Object] interface {
	push(g *group[T])
	len() int
	// take empties the backlog. now is the state of the cache that all of it led to.
	take(now *cache.Snapshot[T], at time.Time) []*group[T]
}

// fullBacklog keeps every group as it came, but of resyncs only the oldest: a handler that has not got round to one has
// no use for another.
type fullBacklog[T api.Object] struct {
	groups []*group[T]
	n      int
	resync bool // there is one among groups
}

func (b *fullBacklog[T]) push(g *group[T]) {
	if g.resync && b.resync {
		return
	}
	b.resync = b.resync || g.resync
	b.groups = append(b.groups, g)
	b.n += g.len()
}

func (b *fullBacklog[T]) len() int { return b.n }

func (b *fullBacklog[T]) take(*cache.Snapshot[T], time.Time) []*group[T] {
	groups := b.groups
	*b = fullBacklog[T]{}
	return groups
}

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

func newCoalescingBacklog[T api.Object]() *coalescingBacklog[T] {
	return &coalescingBacklog[T]{slots: map[api.Key]*slot[T]{}}
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
	for i := range g.notifications {
		b.add(&g.notifications[i])
	}
}

// add merges one notification into its slot, by the table of the package's documentation.
func (b *coalescingBacklog[T]) add(n *Notification[T]) {
	key := api.KeyOf(n.Object)
	s := b.slots[key]
	if s == nil {
		s = &slot[T]{}
		b.slots[key] = s
		b.order = append(b.order, key)
	}
	switch {
	case n.Type == Delete && s.newest == nil && s.deletion == nil:
		s.deletion = n
	case n.Type == Delete && s.newest != nil && s.newest.Type == Update:
		s.deletion, s.newest = n, nil
	case n.Type == Delete:
		s.newest = nil
	case n.Type == Update && s.newest != nil:
		merged := *n
		merged.Type, merged.Old, merged.Resync = s.newest.Type, s.newest.Old, false
		merged.InitialList = s.newest.InitialList
		merged.At = s.newest.At
		s.newest = &merged
	default:
		s.newest = n
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

func (b *coalescingBacklog[T]) take(now *cache.Snapshot[T], at time.Time) []*group[T] {
	var groups []*group[T]
	changes := &group[T]{at: at}
	told := make(map[api.Key]struct{}, len(b.slots))
	for _, key := range b.order {
		s := b.slots[key]
		if _, again := told[key]; s == nil || again {
			continue
		}
		told[key] = struct{}{}
		for _, n := range []*Notification[T]{s.deletion, s.newest} {
			if n != nil {
				changes.notifications = append(changes.notifications, *n)
			}
		}
	}
	if b.initial {
		groups = append(groups, &group[T]{replay: now, at: at})
	}
	if len(changes.notifications) > 0 {
		groups = append(groups, changes)
	}
	if b.resync && !b.initial {
		groups = append(groups, &group[T]{replay: now, resync: true, skip: told, at: at})
	}
	if b.complete {
		groups = append(groups, &group[T]{at: at, completes: true})
	}
	*b = *newCoalescingBacklog[T]()
	return groups
}
