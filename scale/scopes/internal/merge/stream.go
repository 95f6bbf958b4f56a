package merge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/leatproject/leat/api"
)

// Stream is one input of a Merger: a reflector.Store for one list and watch stream. A list deletes objects of this
// stream only. One goroutine may call its methods, except Len, Objects, Version and Listed, which may be called on any
// goroutine.
type Stream[T api.Object] struct {
	m         *Merger[T]
	namespace string
	selector  api.Selector
	slot      int
	listed    chan struct{}

	// members are the objects that this stream has received. Its goroutine changes them in a transaction of the queue.
	// So it reads them without one, and other goroutines read them in one.
	members map[api.Key]T

	// The open transaction of the queue guards the fields below.
	reached  string // the version received
	lost     string // the version of the last list, or of the last object that left the stream
	held     int    // deletions that wait; the published version waits with them
	visible  string // the version in the last batch
	pending  bool   // the version is part of the next batch
	isListed bool
	awaited  bool // Merger.unlisted counts the stream
	mixed    bool // there are, or were, other streams that can have the same objects
}

// Get returns the newest state that the stream has received of an object.
func (s *Stream[T]) Get(key api.Key) (T, bool) {
	object, ok := s.members[key]
	return object, ok
}

// Lookup is Get for a key that is still in a decoder's buffer. It does not allocate.
func (s *Stream[T]) Lookup(namespace, name []byte) (T, bool) {
	object, ok := s.members[api.Key{Namespace: string(namespace), Name: string(name)}]
	return object, ok
}

// KnownLen returns the number of objects of the stream.
func (s *Stream[T]) KnownLen() int { return len(s.members) }

// Len returns the number of objects of the stream.
func (s *Stream[T]) Len() int {
	defer s.m.begin().Commit()
	return len(s.members)
}

// Objects returns what the producer has received: the newest state of each object, in no order, and the version that it
// has reached. It may be called on any goroutine. While it copies the list, which takes about 20 ms for a million
// objects, the queue waits.
func (s *Stream[T]) Objects() (list []T, version string) {
	defer s.m.begin().Commit()
	return slices.AppendSeq(make([]T, 0, len(s.members)), maps.Values(s.members)), s.reached
}

// Version returns the version of the stream in the last batch.
func (s *Stream[T]) Version() string {
	defer s.m.begin().Commit()
	return s.visible
}

// Listed returns a channel that is closed when the consumer has applied the first list of the stream. It may stay
// open if the stream is removed before.
func (s *Stream[T]) Listed() <-chan struct{} { return s.listed }

// Put records a new state of an object and the version of the stream with it.
func (s *Stream[T]) Put(object T, version string) {
	defer s.m.begin().Commit()
	s.put(object, false, false)
	s.advance(version)
}

// Delete records that an object is not in the stream any more, with its last state.
func (s *Stream[T]) Delete(object T, version string) {
	s.delete(api.KeyOf(object), object, false, version)
}

// DeleteKey records that an object is not in the stream any more. The producer has not received its last state.
func (s *Stream[T]) DeleteKey(key api.Key, version string) {
	if last, ok := s.members[key]; ok {
		s.delete(key, last, true, version)
	} else {
		s.Bookmark(version)
	}
}

func (s *Stream[T]) delete(key api.Key, last T, unknown bool, version string) {
	defer s.m.begin().Commit()
	s.advance(version)
	if member, ok := s.members[key]; ok {
		if differentUIDs(member, last) {
			last, unknown = member, true
		}
		s.drop(key, last, unknown, false, version)
	}
}

// Bookmark records a version of the stream without a change.
func (s *Stream[T]) Bookmark(version string) {
	defer s.m.begin().Commit()
	s.advance(version)
}

// Replace records a whole list of the stream and its version, as [deltafifo.DeltaFIFO.Replace] does.
func (s *Stream[T]) Replace(list []T, version string) {
	m := s.m
	defer m.begin().Commit()
	wentBack := older(version, s.reached)
	s.reached, s.lost = version, version
	before := s.members
	s.members = make(map[api.Key]T, len(list))
	for _, object := range list {
		s.members[api.KeyOf(object)] = object
	}
	for key, h := range m.held { // the list may have skipped that an object came and left
		if (s.namespace == "" || s.namespace == key.Namespace) && older(h.version, version) {
			h.version = version
			m.held[key] = h
		}
	}
	s.dropMissing(before, wentBack, version)
	for _, object := range list {
		key := api.KeyOf(object)
		known, exists := m.txn.Get(key)
		if old, had := before[key]; had && exists && api.Identical(old, object) && api.Identical(known, object) {
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

// dropMissing drops the objects of an earlier list that the stream does not have any more, in the order of their keys.
func (s *Stream[T]) dropMissing(before map[api.Key]T, wentBack bool, version string) {
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

// put makes an object a member. If another stream has the same state, the member is that pointer, so that there is one
// object and no update.
func (s *Stream[T]) put(object T, initial, force bool) {
	m, key := s.m, api.KeyOf(object)
	if !s.mixed {
		s.members[key] = object
		m.txn.Put(object, initial)
		return
	}
	if known, ok := m.txn.Get(key); ok && api.SameVersion(known, object) {
		m.peers(s, key.Namespace, func(p *Stream[T]) bool {
			if other, has := p.members[key]; has && api.Identical(other, known) {
				object = other
				return false
			}
			return true
		})
	}
	s.members[key] = object
	m.settle(s, key, initial, force)
}

// drop ends the membership of an object. The object is deleted if no other stream has it.
func (s *Stream[T]) drop(key api.Key, last T, unknown, force bool, version string) {
	m := s.m
	delete(s.members, key)
	s.lost = cmp.Or(version, s.lost)
	if s.mixed && m.settle(s, key, false, force) {
		return
	}
	if _, exists := m.txn.Get(key); exists && (!s.mixed || !m.hold(s, key, last, unknown, version)) {
		m.txn.Delete(key, last, unknown)
	}
}

// advance notes the version reached. It carries out the deletions that have waited for it.
func (s *Stream[T]) advance(version string) {
	m := s.m
	if version == "" || version == s.reached {
		return
	}
	s.reached = version
	if _, ordered := api.CompareVersions(version, "1"); ordered && (m.newest == "" || older(m.newest, version)) {
		m.newest = version
	}
	if len(m.held) > 0 {
		m.releaseMatching(func(key api.Key, h heldDeletion[T]) bool { return !m.mayMove(h, key.Namespace) })
	}
	if s.held == 0 {
		m.publish(s)
	}
}

func (s *Stream[T]) forgetAwaited() {
	if s.awaited {
		s.awaited = false
		s.m.unlisted--
	}
}

// Remove removes the stream and its objects, except those that another stream has. silent means that handlers do not
// get the deletions, because another process has taken the objects over. The consumer closes gone when it has applied
// the removal. Remove must be called once, and of the other methods only Len, Objects, Version and Listed may be called
// afterwards.
func (s *Stream[T]) Remove(silent bool, gone chan struct{}) {
	m := s.m
	defer m.begin().Commit()
	m.applied = append(m.applied, gone)
	left := slices.DeleteFunc(m.byNamespace[s.namespace], func(other *Stream[T]) bool { return other == s })
	if m.byNamespace[s.namespace] = left; len(left) == 0 {
		delete(m.byNamespace, s.namespace)
	}
	m.slots[s.slot] = nil
	m.free = append(m.free, s.slot)
	s.forgetAwaited()
	m.changeLayout(s)
	s.removeMembers(silent)
}

// removeMembers removes the objects of a stream that is not among the streams any more.
func (s *Stream[T]) removeMembers(silent bool) {
	m := s.m
	m.releaseMatching(func(key api.Key, h heldDeletion[T]) bool { return h.stream == s || !m.mayMove(h, key.Namespace) })
	keys := make([]api.Key, 0, len(s.members))
	for key := range s.members {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	members := s.members
	s.members = nil
	for _, key := range keys {
		switch {
		case m.settle(s, key, false, false):
			// A stream that is behind may have an older object of the same name. The known object is still that of s.
			if known, ok := m.txn.Get(key); silent && ok && !differentUIDs(known, members[key]) && !m.has(known, key) {
				m.txn.Forget(key)
			}
		case silent:
			m.txn.Forget(key)
		default:
			m.txn.Delete(key, members[key], true)
		}
	}
}
