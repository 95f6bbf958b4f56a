package deltafifo

import (
	"maps"
	"slices"

	"github.com/leatproject/leat/api"
)

// Scope is one producer of Scopes, for the reflector of one list and watch stream. It corresponds to the producer's
// methods of DeltaFIFO: what a list lacks is deleted in this scope only. One goroutine may call its methods, except
// Len, Objects, Version and Listed, which may be called on any goroutine.
type Scope[T api.Object] struct {
	set       *Scopes[T]
	namespace string
	selector  api.Selector
	slot      int
	listed    chan struct{}

	// members are the objects that this producer has received. Its goroutine changes them while it holds the mutex of
	// the queue. So it reads them without the mutex, and other goroutines read them with it.
	members map[api.Key]T

	// The mutex of the queue guards the fields below.
	reached  string // the version received
	held     int    // deletions that wait; the published version waits with them
	visible  string // the version in the last batch
	pending  bool   // the version is part of the next batch
	isListed bool
	awaited  bool // Scopes.unlisted counts the scope
	mixed    bool // there are, or were, other scopes that can have the same objects
}

// Get returns the newest state that the scope has received of an object.
func (s *Scope[T]) Get(key api.Key) (T, bool) {
	object, ok := s.members[key]
	return object, ok
}

// Lookup is Get for a key that is still in a decoder's buffer. It does not allocate.
func (s *Scope[T]) Lookup(namespace, name []byte) (T, bool) {
	object, ok := s.members[api.Key{Namespace: string(namespace), Name: string(name)}]
	return object, ok
}

// KnownLen returns the number of objects of the scope.
func (s *Scope[T]) KnownLen() int { return len(s.members) }

// Len returns the number of objects of the scope.
func (s *Scope[T]) Len() int {
	s.set.q.mu.Lock()
	defer s.set.q.mu.Unlock()
	return len(s.members)
}

// Objects returns what the producer has received: the newest state of each object, in no order, and the version that
// it has reached. It may be called on any goroutine. While it copies the list, which takes about 20 ms for a million
// objects, the queue waits.
func (s *Scope[T]) Objects() (list []T, version string) {
	s.set.q.mu.Lock()
	defer s.set.q.mu.Unlock()
	return slices.AppendSeq(make([]T, 0, len(s.members)), maps.Values(s.members)), s.reached
}

// Version returns the version of the scope in the last batch.
func (s *Scope[T]) Version() string {
	s.set.q.mu.Lock()
	defer s.set.q.mu.Unlock()
	return s.visible
}

// Listed returns a channel that is closed when the consumer has applied the first list of the scope. It is never closed
// if the scope is removed before.
func (s *Scope[T]) Listed() <-chan struct{} { return s.listed }

// Put records a new state of an object and the version of the scope with it.
func (s *Scope[T]) Put(object T, version string) {
	q := s.set.q
	q.mu.Lock()
	defer q.mu.Unlock()
	s.put(object, false, false)
	s.advance(version)
	q.signal()
}

// Delete records that an object is not in the scope any more, with its last state.
func (s *Scope[T]) Delete(object T, version string) {
	s.delete(api.KeyOf(object), object, false, version)
}

// DeleteKey records that an object whose last state the producer has not received is not in the scope any more.
func (s *Scope[T]) DeleteKey(key api.Key, version string) {
	if last, ok := s.members[key]; ok {
		s.delete(key, last, true, version)
	} else {
		s.Bookmark(version)
	}
}

func (s *Scope[T]) delete(key api.Key, last T, unknown bool, version string) {
	q := s.set.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if member, ok := s.members[key]; ok {
		if differentUIDs(member, last) {
			last, unknown = member, true
		}
		s.drop(key, last, unknown, false, version)
	}
	s.advance(version)
	q.signal()
}

// Bookmark records a version of the scope without a change.
func (s *Scope[T]) Bookmark(version string) {
	s.set.q.mu.Lock()
	defer s.set.q.mu.Unlock()
	s.advance(version)
}

// Replace records a whole list of the scope and its version. What DeltaFIFO.Replace says holds for the scope.
func (s *Scope[T]) Replace(list []T, version string) {
	m, q := s.set, s.set.q
	q.mu.Lock()
	defer q.mu.Unlock()
	wentBack := older(version, s.reached)
	s.reached = version
	before := s.members
	s.members = make(map[api.Key]T, len(list))
	for _, object := range list {
		s.members[api.KeyOf(object)] = object
	}
	s.dropMissing(before, wentBack, version)
	for _, object := range list {
		key := api.KeyOf(object)
		known, exists := q.known[key]
		if old, had := before[key]; had && exists && api.Identical(old, object) && api.Identical(known.object, object) {
			continue
		}
		s.put(object, !s.isListed, wentBack)
	}
	if !s.isListed {
		s.isListed = true
		m.applied = append(m.applied, s.listed)
		s.forgetAwaited()
	}
	s.reached = "" // advance compares it, and m.newest may have to go back
	if wentBack {
		m.newest = ""
	}
	s.advance(version)
	m.publish(s)
}

// dropMissing drops the objects of an earlier list that the scope does not have any more, in the order of their keys.
func (s *Scope[T]) dropMissing(before map[api.Key]T, wentBack bool, version string) {
	var missing []api.Key
	for key := range before {
		if _, ok := s.members[key]; !ok {
			missing = append(missing, key)
		}
	}
	slices.SortFunc(missing, compareKeys)
	for _, key := range missing {
		s.drop(key, before[key], true, wentBack, version)
	}
}

// put makes an object a member. If another scope has the same state, the member is that pointer, so that there is one
// object and no update.
func (s *Scope[T]) put(object T, initial, force bool) {
	m, key := s.set, api.KeyOf(object)
	if !s.mixed {
		s.members[key] = object
		m.q.put(object, initial)
		return
	}
	if known, ok := m.q.known[key]; ok && api.SameVersion(known.object, object) {
		m.peers(s, key.Namespace, func(p *Scope[T]) bool {
			if other, has := p.members[key]; has && api.Identical(other, known.object) {
				object = other
				return false
			}
			return true
		})
	}
	s.members[key] = object
	m.settle(s, key, initial, force)
}

// drop ends the membership of an object. The object is deleted if no other scope has it.
func (s *Scope[T]) drop(key api.Key, last T, unknown, force bool, version string) {
	m := s.set
	delete(s.members, key)
	if s.mixed && m.settle(s, key, false, force) {
		return
	}
	if _, exists := m.q.known[key]; exists && (!s.mixed || !m.hold(s, key, last, unknown, version)) {
		m.end(key, last, unknown, false)
	}
}

// advance notes the version reached. It carries out the deletions that have waited for it.
func (s *Scope[T]) advance(version string) {
	m := s.set
	if version == "" || version == s.reached {
		return
	}
	s.reached = version
	if _, ordered := api.CompareVersions(version, "1"); ordered && (m.newest == "" || older(m.newest, version)) {
		m.newest = version
	}
	if len(m.held) > 0 {
		m.releaseMatching(func(key api.Key, h heldDeletion[T]) bool { return h.scope != s && !m.mayMove(h, key.Namespace) })
	}
	if s.held == 0 {
		m.publish(s)
	}
}

func (s *Scope[T]) forgetAwaited() {
	if s.awaited {
		s.awaited = false
		s.set.unlisted--
	}
}

// Remove removes the scope and its objects, except those that another scope has. silent means that handlers do not get
// the deletions, because another process has taken the objects over. The consumer closes gone when it has applied the
// removal. Remove must be called once, and of the other methods only Len, Objects, Version and Listed may be called
// afterwards.
func (s *Scope[T]) Remove(silent bool, gone chan struct{}) {
	m, q := s.set, s.set.q
	q.mu.Lock()
	defer q.mu.Unlock()
	m.applied = append(m.applied, gone)
	left := slices.DeleteFunc(m.byNamespace[s.namespace], func(other *Scope[T]) bool { return other == s })
	if m.byNamespace[s.namespace] = left; len(left) == 0 {
		delete(m.byNamespace, s.namespace)
	}
	m.slots[s.slot] = nil
	m.free = append(m.free, s.slot)
	s.forgetAwaited()
	m.changeLayout(s)
	s.removeMembers(silent)
}

// removeMembers removes the objects of a scope that is not among the scopes any more.
func (s *Scope[T]) removeMembers(silent bool) {
	m := s.set
	m.releaseMatching(func(key api.Key, h heldDeletion[T]) bool { return h.scope == s || !m.mayMove(h, key.Namespace) })
	keys := make([]api.Key, 0, len(s.members))
	for key := range s.members {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	members := s.members
	s.members = nil
	for _, key := range keys {
		if !m.settle(s, key, false, false) {
			m.end(key, members[key], true, silent)
		}
	}
}
