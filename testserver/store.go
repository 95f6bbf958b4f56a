package testserver

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// store contains all objects of the server. All share one version counter, as in etcd.
type store struct {
	mu          sync.Mutex // guards the fields below, and the links between changes
	version     uint64
	collections map[schema.GroupResource]*collection
	order       []*collection // in the order of registration, for discovery
	history     int           // number of changes that a collection keeps
	advanced    signal        // fires when the version changes
	names       names
	logs        podLogs // has a lock of its own
	strict      bool    // new objects need an existing namespace
	managed     bool    // writes are recorded in managedFields
	immediate   bool    // pods are deleted without waiting for a kubelet
}

// collection is one resource: its present state and the changes that led to it.
type collection struct {
	def *definition
	// root is the present state. tail is the last change. base is the newest forgotten change, or a change without
	// content. Each change from base on links to the next one. A watch is a pointer into this list, so forgetting the
	// oldest changes takes nothing from an open watch.
	root       *node
	base, tail *change
	kept       int
	wake       signal
	retired    bool // not served any more
	epoch      int  // number of restores; a watch of an earlier epoch must end
}

// change is one change of a collection.
type change struct {
	version uint64
	number  uint64  // number of this change in the collection
	before  *record // nil for a creation
	after   *record // nil for a deletion
	deleted *record // of a deletion: the last state, with the version of the deletion
	root    *node   // the state after the change
	next    *change
}

// signal wakes goroutines at the next change of something. It creates its channel only if a goroutine waits. The mutex
// of its owner guards it.
type signal struct{ c chan struct{} }

func (s *signal) wait() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) fire() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

func newStore(o Options) *store {
	return &store{
		version:     o.FirstVersion,
		collections: map[schema.GroupResource]*collection{},
		history:     o.History,
		names:       names{seed: o.Seed},
		strict:      o.StrictNamespaces,
		managed:     o.ManagedFields,
		immediate:   o.ImmediateDeletion,
	}
}

// define adds a collection, or replaces the definition of an existing one. The caller holds the lock.
func (s *store) define(d *definition) *collection {
	gr := d.GroupResource()
	if c, ok := s.collections[gr]; ok {
		c.def = d
		if c.retired {
			c.retired = false
			s.order = append(s.order, c)
		}
		return c
	}
	base := &change{version: s.version}
	c := &collection{def: d, base: base, tail: base}
	s.collections[gr] = c
	s.order = append(s.order, c)
	return c
}

// retire stops serving a collection and ends its watches. It keeps the collection for snapshots. The caller holds the
// lock and has removed the objects.
func (s *store) retire(c *collection) {
	c.retired = true
	s.order = slices.DeleteFunc(s.order, func(o *collection) bool { return o == c })
	c.wake.fire()
}

// find returns the collection that is served under a group, version and plural name, or nil.
func (s *store) find(group, version, plural string) *collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[schema.GroupResource{Group: group, Resource: plural}]
	if c == nil || c.retired || !c.def.serves(version) {
		return nil
	}
	return c
}

// put stores tree as the next version of its object and returns the record. The caller holds the lock.
func (s *store) put(c *collection, before *record, tree object) (*record, error) {
	after, err := newRecord(c.def, tree, s.version+1)
	if err != nil {
		return nil, err
	}
	c.root = c.root.set(after)
	s.append(c, &change{before: before, after: after})
	return after, nil
}

// drop removes an object and returns its last state with the version of the deletion. The caller holds the lock.
func (s *store) drop(c *collection, before *record) *record {
	gone := before.at(s.version + 1)
	c.root = c.root.remove(before.path)
	s.append(c, &change{before: before, deleted: gone})
	s.logs.forget(before.uid)
	return gone
}

func (s *store) append(c *collection, ch *change) {
	s.version++
	ch.version, ch.number, ch.root = s.version, c.tail.number+1, c.root
	c.tail.next = ch
	c.tail = ch
	c.kept++
	for c.kept > s.history {
		c.base = c.base.next
		c.kept--
	}
	c.wake.fire()
	s.advanced.fire()
}

// compact forgets all history: watches and exact reads of older versions are expired. The caller holds the lock.
func (s *store) compact() {
	for _, c := range s.collections {
		base := &change{version: s.version, number: c.tail.number, root: c.root}
		// Open watches point to the old tail, so later changes must be reachable from it too.
		c.tail.next, c.base, c.tail, c.kept = base, base, base, 0
		c.wake.fire()
	}
}

// stateAt returns the state of a collection at a version. ok is false if the history does not reach back to it. The
// caller holds the lock and has checked that the server has reached the version.
func (c *collection) stateAt(version uint64) (root *node, ok bool) {
	last, ok := c.after(version)
	if !ok {
		return nil, false
	}
	return last.root, true
}

// after returns the last change up to a version: a watch of later changes starts there. ok is false if the history does
// not reach back to it. The caller holds the lock.
func (c *collection) after(version uint64) (cursor *change, ok bool) {
	if version < c.base.version {
		return nil, false
	}
	at := c.base
	for at.next != nil && at.next.version <= version {
		at = at.next
	}
	return at, true
}

// nextVersion returns a channel that closes when the version changes.
func (s *store) nextVersion() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advanced.wait()
}

// empty reports whether a change has no content and sends no event.
func (ch *change) empty() bool { return ch.after == nil && ch.deleted == nil }

// now returns the present time as objects contain it: in UTC and whole seconds.
func now() string { return time.Now().UTC().Format(time.RFC3339) }
