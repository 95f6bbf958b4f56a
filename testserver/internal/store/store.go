package store

import (
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/signal"
)

// Store contains all objects of a server. All share one version counter, as in etcd.
//
// A caller holds the lock from the read to the end of the write of one request, so there is nothing to retry. Methods
// say whether their caller holds it.
type Store struct {
	mu          sync.Mutex // guards the fields below, and the links between changes
	version     uint64
	collections map[schema.GroupResource]*Collection
	order       []*Collection // in the order of registration, for discovery
	bytes       int           // of all objects
	history     int           // number of changes that a collection keeps
	advanced    signal.Signal // fires when the version changes
	restored    signal.Signal // fires when another state replaces the present one
	garbage     chan struct{} // closes when the first object needs a garbage collector
	names       names
	logs        Logs // has a lock of its own
}

// New returns an empty store. It begins at a version, keeps a number of changes of each collection, and generates
// names from a seed.
func New(version uint64, history int, seed uint64) *Store {
	return &Store{
		version: version, history: history, names: names{seed: seed},
		collections: map[schema.GroupResource]*Collection{}, garbage: make(chan struct{}),
	}
}

// Empty returns a store without objects and resources, at the version of this one. It generates the names that this one
// would generate next. The caller holds the lock.
func (s *Store) Empty() *Store {
	out := New(s.version, s.history, 0)
	out.names = s.names
	return out
}

// Lock locks the state.
func (s *Store) Lock() { s.mu.Lock() }

// Unlock unlocks the state.
func (s *Store) Unlock() { s.mu.Unlock() }

// Version returns the version of the last change. The caller holds the lock.
func (s *Store) Version() uint64 { return s.version }

// Reach sets the version, unless the store has reached it already. The caller holds the lock and makes a change next.
func (s *Store) Reach(version uint64) { s.version = max(s.version, version) }

// Garbage returns a channel that closes when an object has owners or is deleted and waits for its finalizers, or when a
// state is restored. Before that, a garbage collector has nothing to do.
func (s *Store) Garbage() <-chan struct{} { return s.garbage }

// mayCollect closes the channel of Garbage. The caller holds the lock.
func (s *Store) mayCollect() {
	select {
	case <-s.garbage:
	default:
		close(s.garbage)
	}
}

// Logs returns the logs of containers.
func (s *Store) Logs() *Logs { return &s.logs }

// NewUID generates a UID. The caller holds the lock.
func (s *Store) NewUID() string { return s.names.uid() }

// NewSuffix generates the end of a name. The caller holds the lock.
func (s *Store) NewSuffix() string { return s.names.suffix() }

// NextVersion returns a channel that closes when the version changes. The caller does not hold the lock.
func (s *Store) NextVersion() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advanced.Wait()
}

// NextRestore returns a channel that closes when Restore replaces the present state. The caller does not hold the lock.
func (s *Store) NextRestore() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restored.Wait()
}

// Define adds a collection, or replaces the definition of an existing one. The caller holds the lock.
func (s *Store) Define(d *registry.Definition) {
	gr := d.GroupResource()
	if c, ok := s.collections[gr]; ok {
		c.def.Store(d)
		if c.retired {
			c.retired = false
			s.order = append(s.order, c)
		}
		return
	}
	c := &Collection{}
	c.def.Store(d)
	if of := s.collections[d.Alias]; of != nil {
		c.contents = of.contents
	} else {
		c.contents = &contents{}
		c.start(&change{version: s.version})
	}
	s.collections[gr] = c
	s.order = append(s.order, c)
}

// Retire stops serving a collection and ends its watches. It keeps the collection for snapshots. The caller holds the
// lock and has removed the objects.
func (s *Store) Retire(c *Collection) {
	c.retired = true
	s.order = slices.DeleteFunc(s.order, func(o *Collection) bool { return o == c })
	c.changed.Fire()
}

// Collection returns the collection of a resource, or nil if it is not served. The caller holds the lock.
func (s *Store) Collection(gr schema.GroupResource) *Collection {
	if c := s.collections[gr]; c != nil && !c.retired {
		return c
	}
	return nil
}

// Find returns the collection that is served under a group, version and plural name, with its present definition. ok is
// false if there is no such collection. The caller does not hold the lock.
func (s *Store) Find(group, version, plural string) (c *Collection, d *registry.Definition, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.Collection(schema.GroupResource{Group: group, Resource: plural})
	if c == nil || !c.Definition().Serves(version) {
		return nil, nil, false
	}
	return c, c.Definition(), true
}

// Served returns the served collections in the order of their registration. The caller holds the lock.
func (s *Store) Served() []*Collection { return slices.Clone(s.order) }

// Len returns the number of objects, in the time of a look-up for each resource. The caller holds the lock.
func (s *Store) Len() (n int) {
	for _, c := range s.collections {
		if c.Definition().Alias.Resource == "" { // another resource counts its objects
			n += c.root.len()
		}
	}
	return n
}

// Bytes returns the number of bytes of all objects in JSON. The caller holds the lock.
func (s *Store) Bytes() int { return s.bytes }

// Definitions returns the served resources in the order of their registration. The caller does not hold the lock.
func (s *Store) Definitions() []*registry.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*registry.Definition, len(s.order))
	for i, c := range s.order {
		out[i] = c.Definition()
	}
	return out
}

// ErrClaimed is the error of Put if another object holds what the object would hold; see registry.Claimer.
var ErrClaimed = errors.New("testserver: another object holds the same addresses or ports")

// Put stores tree as the next version of its object and returns the record. before is nil for a new object. The caller
// holds the lock.
func (s *Store) Put(c *Collection, before *Record, tree object.Tree) (*Record, error) {
	after, err := NewRecord(c.Definition(), tree, s.version+1)
	if err != nil {
		return nil, err
	}
	return s.Replace(c, before, after, tree)
}

// Replace is Put for an object that NewRecord has already encoded from tree, perhaps as another version. It may change
// and keep encoded, which the caller does not use any more.
func (s *Store) Replace(c *Collection, before, encoded *Record, tree object.Tree) (*Record, error) {
	if encoded.Size() > maxSize && !encoded.fits() {
		return nil, errTooLarge
	}
	if !c.claim(before, tree) {
		return nil, ErrClaimed
	}
	after := encoded
	if after.Version != s.version+1 {
		after = encoded.At(s.version + 1)
	}
	if before != nil {
		after.share(before)
	}
	s.put(c, before, after)
	return after, nil
}

func (s *Store) put(c *Collection, before, after *Record) {
	if after.owned || after.Deleting && after.HasFinalizers {
		s.mayCollect()
	}
	c.root = c.root.set(after)
	s.bytes += after.Size()
	if before != nil {
		s.bytes -= before.Size()
	}
	s.append(c, &change{before: before, after: after})
}

// Drop removes an object and returns its last state with the version of the deletion. The caller holds the lock.
func (s *Store) Drop(c *Collection, before *Record) *Record {
	gone := before.At(s.version + 1)
	c.claim(before, nil)
	c.root = c.root.remove(before.Path)
	s.bytes -= before.Size()
	s.append(c, &change{before: before, deleted: gone})
	s.logs.forget(before.UID())
	return gone
}

func (s *Store) append(c *Collection, ch *change) {
	ch.before.dropValues()
	s.version++
	ch.version, ch.number = s.version, c.tail.number+1
	if ch.rooted = ch.number%rootEvery == 0; ch.rooted {
		ch.root = c.root
	}
	c.tail.next = ch
	c.tail = ch
	c.kept++
	for c.kept > s.history {
		c.forget()
	}
	c.changed.Fire()
	s.advanced.Fire()
}

// Compact forgets all history: watches and exact reads of older versions are expired. The caller holds the lock.
func (s *Store) Compact() {
	for _, c := range s.collections {
		base := &change{version: s.version, number: c.tail.number}
		c.tail.next = base // open watches point to the old tail, so later changes must be reachable from it too
		c.start(base)
		c.changed.Fire()
	}
}

// StorageError returns the 500 without a reason with which kube-apiserver answers errors of its storage that are not a
// Status.
func StorageError(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Message: err.Error(),
	}}
}
