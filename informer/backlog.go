package informer

import (
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// backlog is the list of notifications that a listener has not delivered yet. One implementation keeps all
// notifications, the other merges those of each object. The listener's lock guards a backlog until the listener's
// goroutine takes it.
type backlog[T api.Object] interface {
	push(g *group[T])
	len() int
	// groups returns the notifications in order. now is the cache's snapshot after all of them. No other method is
	// called afterwards.
	groups(now *cache.Snapshot[T], at time.Time) []*group[T]
}

func newBacklog[T api.Object](coalesce bool) backlog[T] {
	if coalesce {
		return &coalescingBacklog[T]{slots: map[api.Key]*slot[T]{}}
	}
	return &fullBacklog[T]{}
}

// fullBacklog keeps every group. It keeps only one resync, because a second one would repeat the first.
type fullBacklog[T api.Object] struct {
	all    []*group[T]
	n      int
	resync bool // all contains a resync
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

// coalescingBacklog keeps at most two notifications for each object: a Delete of the state that the handler got last,
// and an Add or Update with the newest state. A replay that is not delivered yet replaces all changes, because its
// objects are taken from the cache when the listener delivers it. A resync is a flag for the same reason.
type coalescingBacklog[T api.Object] struct {
	order    []api.Key // in the order of the first change; keys without a slot are skipped
	slots    map[api.Key]*slot[T]
	initial  bool // the handler gets the whole cache as Adds
	resync   bool
	complete bool // the initial list ends with this backlog
	size     int  // objects in the cache when initial or resync was set, for len
}

// slot has the pending changes of one key: a deletion, then an addition or an update. Either may be nil.
type slot[T any] struct {
	deletion *api.Change[T]
	newest   *api.Change[T]
}

func (b *coalescingBacklog[T]) push(g *group[T]) {
	b.complete = b.complete || g.completes
	if g.replay != nil {
		b.size = g.replay.Len()
		if g.resync {
			b.resync = true
		} else {
			b.initial = true
		}
	}
	if b.initial {
		return
	}
	for _, n := range g.changes {
		b.add(n)
	}
}

// add merges one change into its slot; doc.go has the table. The slot gets a copy, because a pointer into the group
// would keep the other changes of the group in memory.
func (b *coalescingBacklog[T]) add(n api.Change[T]) {
	key := api.KeyOf(n.Object)
	s := b.slots[key]
	if s == nil {
		s = &slot[T]{}
		b.slots[key] = s
		b.order = append(b.order, key)
	}
	switch {
	case n.Type == api.Deleted && (s.newest == nil || s.newest.Type == api.Updated):
		s.deletion, s.newest = &n, nil
	case n.Type == api.Deleted:
		s.newest = nil
	case n.Type == api.Updated && s.newest != nil:
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

// compact drops keys without a slot when they are more than half of all keys, so that the order is bounded by the
// number of slots. A key that was deleted and added again is in the order twice; its first place counts.
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

func (b *coalescingBacklog[T]) len() int { return max(len(b.slots), b.size) }

func (b *coalescingBacklog[T]) groups(now *cache.Snapshot[T], at time.Time) []*group[T] {
	var groups []*group[T]
	if b.initial {
		groups = append(groups, &group[T]{replay: now, at: at})
	}
	merged, notified := b.changes(at)
	if len(merged.changes) > 0 {
		groups = append(groups, merged)
	}
	if b.resync && !b.initial {
		groups = append(groups, &group[T]{replay: now, resync: true, skip: notified, at: at})
	}
	if b.complete {
		groups = append(groups, &group[T]{at: at, completes: true})
	}
	return groups
}

// changes moves the changes of all slots into one group. It also returns the keys that a resync can skip.
func (b *coalescingBacklog[T]) changes(at time.Time) (*group[T], map[api.Key]struct{}) {
	g := &group[T]{at: at}
	notified := map[api.Key]struct{}{}
	for _, key := range b.order {
		s := b.slots[key]
		if s == nil {
			continue
		}
		delete(b.slots, key) // the key may be in the order twice
		if s.deletion != nil {
			g.changes = append(g.changes, *s.deletion)
		}
		if s.newest != nil {
			g.changes = append(g.changes, *s.newest)
			notified[key] = struct{}{}
		}
	}
	return g, notified
}
