package testserver

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// store holds every object of the server under one version counter, as etcd does under one revision.
type store struct {
	mu          sync.Mutex // guards the fields below, and the links between changes
	version     uint64
	collections map[schema.GroupResource]*collection
	order       []*collection // in the order of registration, for discovery
	history     int           // changes kept of each collection
	advanced    signal        // fires with every change of the version
	names       names
	logs        podLogs // guarded by itself
	strict      bool    // namespaces must exist
	managed     bool    // writes record managedFields
	immediate   bool    // pods do not wait for a kubelet
}

// collection is one resource: its present state, and the changes that led there.
type collection struct {
	def *definition
	// root is the present state. tail is the last change; base is the newest change that was forgotten, or a change of
	// nothing. From base on, changes link to the next: a watch is a pointer into that list, so that forgetting the
	// oldest changes never takes anything from a watch that is under way.
	root       *node
	base, tail *change
	kept       int
	wake       signal
	retired    bool // no longer served
	epoch      int  // counts restores: a watch of an earlier epoch has lost its place
}

// change is one step of a collection's history.
type change struct {
	version uint64
	number  uint64  // counts the changes of the collection
	before  *record // nil for a creation
	after   *record // nil for a deletion
	gone    *record // of a deletion: the last state, with the deletion's version
	root    *node   // the state after this change
	next    *change
}

// signal wakes whoever waits for the next change of something. It makes its channel only for those who wait, and it is
// guarded by the mutex of what it belongs to.
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

// define adds a collection, or replaces the definition of one that is there. The caller holds the lock.
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

// retire takes a collection out of service and ends its watches; its history stays for snapshots. The caller holds
// the lock and has removed the objects.
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

// put makes tree the next version of its object and returns its record. The caller holds the lock.
func (s *store) put(c *collection, before *record, tree object) (*record, error) {
	after, err := newRecord(c.def, tree, s.version+1)
	if err != nil {
		return nil, err
	}
	c.root = c.root.set(after)
	s.append(c, &change{before: before, after: after})
	return after, nil
}

// drop removes an object and returns its last state under the version of the deletion. The caller holds the lock.
func (s *store) drop(c *collection, before *record) *record {
	gone := before.at(s.version + 1)
	c.root = c.root.remove(before.path)
	s.append(c, &change{before: before, gone: gone})
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

// compact forgets all history: a watch or an exact read of an older version than the present one is expired. The
// caller holds the lock.
func (s *store) compact() {
	for _, c := range s.collections {
		base := &change{version: s.version, number: c.tail.number, root: c.root}
		// Watches under way hold the old tail: whatever comes next must be reachable from it too.
		c.tail.next, c.base, c.tail, c.kept = base, base, base, 0
		c.wake.fire()
	}
}

// stateAt returns the state of a collection at a version; ok is false when its history does not reach back so far. The
// caller holds the lock and has checked that the version is not in the future.
func (c *collection) stateAt(version uint64) (root *node, ok bool) {
	last, ok := c.after(version)
	if !ok {
		return nil, false
	}
	return last.root, true
}

// after returns the change from which a watch of what follows version starts. The caller holds the lock.
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

// nextVersion returns a channel that closes with the next change of the version.
func (s *store) nextVersion() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advanced.wait()
}

// empty tells that a change is a mark in the history and no event.
func (ch *change) empty() bool { return ch.after == nil && ch.gone == nil }

// now is the time that objects are stamped with: whole seconds, in UTC.
func now() string { return time.Now().UTC().Format(time.RFC3339) }
