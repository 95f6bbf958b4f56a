package store

import (
	"iter"
	"sync/atomic"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/signal"
)

// Collection is one resource: its present state and the changes that led to it. The caller of its methods holds the
// lock of the store.
type Collection struct {
	def atomic.Pointer[registry.Definition] // changes with the lock, and may be read without it
	*contents
}

// contents are the objects of a collection. A resource that is an alias of another one has the same contents.
type contents struct {
	// root is the present state. tail is the last change. base is the newest forgotten change, or a change without
	// content. Each change from base on links to the next one. A watch is a pointer into this list, so forgetting the
	// oldest changes takes nothing from an open watch.
	//
	// anchor is the newest change with a root that is not after base.
	root               *node
	anchor, base, tail *change
	kept               int
	changed            signal.Signal
	retired            bool // not served any more
	epoch              int  // number of restores; a watch of an earlier epoch must end
}

// change is one change of a collection.
type change struct {
	version uint64
	number  uint64  // number of this change in the collection
	before  *Record // nil for a creation
	after   *Record // nil for a deletion
	deleted *Record // of a deletion: the last state, with the version of the deletion
	rooted  bool    // root is the state after the change
	root    *node
	next    *change
}

// rootEvery is the number of changes of which one keeps the state after it. A state has about 20 nodes that the state
// before does not have. With the states of all changes, they would be a third of what the collector of garbage looks
// at. The price is up to 63 insertions for a read of an old version.
const rootEvery = 64

// start makes a change without content the only one in the history.
func (c *contents) start(base *change) {
	base.rooted, base.root = true, c.root
	c.anchor, c.base, c.tail, c.kept = base, base, base, 0
}

// forget forgets the oldest change.
func (c *contents) forget() {
	c.base = c.base.next
	c.kept--
	if c.base.rooted {
		c.anchor = c.base
	}
}

// rootAfter returns the state after a change of the history.
func (c *contents) rootAfter(last *change) *node {
	if last == c.tail {
		return c.root
	}
	from := c.anchor
	for ch := from; ch != last; {
		if ch = ch.next; ch.rooted {
			from = ch
		}
	}
	root := from.root
	for ch := from; ch != last; {
		if ch = ch.next; ch.after != nil {
			root = root.set(ch.after)
		} else {
			root = root.remove(ch.before.Path)
		}
	}
	return root
}

// empty reports whether a change has no content and sends no event.
func (ch *change) empty() bool { return ch.after == nil && ch.deleted == nil }

// Definition returns the definition of the resource.
func (c *Collection) Definition() *registry.Definition { return c.def.Load() }

// Get returns the present state of an object, or nil.
func (c *Collection) Get(key api.Key) *Record { return c.root.get(pathOf(key)) }

// All yields the objects of a namespace, or of all namespaces if it is empty, in the order of lists.
func (c *Collection) All(namespace string) iter.Seq[*Record] {
	return c.root.scan(Selection{namespace: namespace}.bounds())
}

// Populated reports whether a namespace has objects in the collection.
func (c *Collection) Populated(namespace string) bool {
	from, until := Selection{namespace: namespace}.bounds()
	return c.root.rank(until) > c.root.rank(from)
}

// claim tells the schema what an object holds from now on. It returns false if another object holds it already.
func (c *Collection) claim(before *Record, after object.Tree) bool {
	claimer, ok := c.Definition().Schema.(registry.Claimer)
	if !ok {
		return true
	}
	var tree object.Tree
	if before != nil {
		tree = before.Tree()
	}
	return claimer.Claim(tree, after)
}

// reclaim claims what all objects hold, and nothing else.
func (c *Collection) reclaim() {
	claimer, ok := c.Definition().Schema.(registry.Claimer)
	if !ok {
		return
	}
	claimer.Release()
	for r := range c.All("") {
		claimer.Claim(nil, r.Tree())
	}
}

// Changed returns a channel that closes at the next change of the collection.
func (c *Collection) Changed() <-chan struct{} { return c.changed.Wait() }

// after returns the last change up to a version: a watch of later changes starts there. ok is false if the history does
// not reach back to it.
func (c *Collection) after(version uint64) (at *change, ok bool) {
	if version < c.base.version {
		return nil, false
	}
	at = c.base
	for at.next != nil && at.next.version <= version {
		at = at.next
	}
	return at, true
}
