package merge

import (
	"cmp"
	"slices"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// moveWait is how long a deletion may wait for another stream, to which the object may have moved.
const moveWait = time.Second

// Merger writes the changes of several streams into one queue: each Stream has its own objects, list and version. The
// queue must not get changes in another way. The version of its batches is the oldest version of the streams, and their
// Note is a *State.
//
// An object may be in several streams, if their selectors overlap. The queue then has its newest state, and deletes it
// when no stream has it any more. Streams with different namespaces cannot have a common object and do not wait for
// each other.
//
// Rule: a deletion waits for at most a second while another stream of the namespace has not reached its version.
// Reason: the object may have moved to that stream, and then the change is an update. The version of the stream that
// lost the object waits too, so that no version is ahead of the objects. Price: such streams show deletions late.
//
// Rule: if another stream has lost an object at a newer version, or any stream lists, the deletion waits until all
// streams have reached that version, its own stream too. Reason: the object may have moved to the other stream and
// back, and this stream has not yet received its return. Price: behind such a loss, deletions of any object are late.
//
// All methods may be called on any goroutine. Each is one transaction of the queue.
type Merger[T api.Object] struct {
	q *deltafifo.DeltaFIFO[T]

	// The open transaction of the queue guards the fields below.
	txn         deltafifo.Txn[T]
	byNamespace map[string][]*Stream[T] // streams of all namespaces have the key ""
	slots       []*Stream[T]            // nil if the slot is free
	free        []int
	newest      string // the newest version of all streams
	held        map[api.Key]heldDeletion[T]
	timer       *time.Timer // nil if no call of releaseOverdue is due

	unlisted  int  // streams that Complete waits for and that have no list
	complete  bool // Complete was called
	announced bool // the first list is complete

	// The fields below describe the next batch. published are the streams whose version has changed, and state is that
	// of the last batch. layout reports that streams were added or removed.
	published []*Stream[T]
	state     *State
	layout    bool
	applied   []chan struct{}
}

// heldDeletion is a deletion that waits for other streams.
type heldDeletion[T api.Object] struct {
	stream  *Stream[T]
	last    T
	unknown bool // the final state
	version string
	until   time.Time
}

// New returns the merger of a queue, which must be new. There is no stream yet.
func New[T api.Object](q *deltafifo.DeltaFIFO[T]) *Merger[T] {
	m := &Merger[T]{q: q, byNamespace: map[string][]*Stream[T]{}, held: map[api.Key]heldDeletion[T]{}, state: &State{}}
	q.Annotate(m.note)
	return m
}

// begin opens a transaction.
func (m *Merger[T]) begin() deltafifo.Txn[T] {
	m.txn = m.q.Begin()
	return m.txn
}

// Add adds a stream of one namespace, or of all namespaces if it is empty. The stream has no list yet.
func (m *Merger[T]) Add(namespace string, selector api.Selector) *Stream[T] {
	s := &Stream[T]{m: m, namespace: namespace, selector: selector, members: map[api.Key]T{}, listed: make(chan struct{})}
	defer m.begin().Commit()
	if n := len(m.free); n > 0 {
		s.slot, m.free = m.free[n-1], m.free[:n-1]
		m.slots[s.slot] = s
	} else {
		s.slot = len(m.slots)
		m.slots = append(m.slots, s)
	}
	m.mix(s)
	m.byNamespace[namespace] = append(m.byNamespace[namespace], s)
	if !m.complete {
		s.awaited = true
		m.unlisted++
	}
	m.changeLayout(s)
	return s
}

// Complete says that the first state of the collection consists of the streams that were added so far.
func (m *Merger[T]) Complete() {
	defer m.begin().Commit()
	m.complete = true
	m.changed()
}

// Selectors returns the selector of each stream that can have objects of a namespace. A [State] describes the last
// batch; Selectors describes the streams of now.
func (m *Merger[T]) Selectors(namespace string) []api.Selector {
	defer m.begin().Commit()
	var all []api.Selector
	m.peers(nil, namespace, func(s *Stream[T]) bool {
		all = append(all, s.selector)
		return true
	})
	return all
}

// Newest returns the newest version that a stream has reached. It is empty before the first list, and if versions have
// no order.
func (m *Merger[T]) Newest() string {
	defer m.begin().Commit()
	return m.newest
}

// Stop ends the wait of deletions, which then remain undone. It is for a queue without a consumer.
func (m *Merger[T]) Stop() {
	defer m.begin().Commit()
	if m.timer != nil {
		m.timer.Stop()
	}
	m.timer, m.held = nil, nil
}

// changeLayout notes that a stream was added or removed.
func (m *Merger[T]) changeLayout(s *Stream[T]) {
	m.layout = true
	m.publish(s)
}

// publish makes the version of a stream part of the next batch.
func (m *Merger[T]) publish(s *Stream[T]) {
	if !s.pending {
		s.pending = true
		m.published = append(m.published, s)
	}
	m.changed()
}

// changed makes the consumer take a batch.
func (m *Merger[T]) changed() {
	if m.complete && m.unlisted == 0 && !m.announced {
		m.announced = true
		m.txn.Complete()
	}
	m.txn.Touch()
}

// note returns the version and the note of the next batch.
func (m *Merger[T]) note() (version string, note any) {
	m.nextState()
	return m.state.oldest, m.state
}

// peers calls f with the other streams that can have objects of a namespace, until f returns false.
func (m *Merger[T]) peers(s *Stream[T], namespace string, f func(*Stream[T]) bool) {
	for _, p := range m.byNamespace[namespace] {
		if p != s && !f(p) {
			return
		}
	}
	if namespace == "" {
		return
	}
	for _, p := range m.byNamespace[""] {
		if p != s && !f(p) {
			return
		}
	}
}

// mix notes that a new stream and others can have common objects, from now on.
func (m *Merger[T]) mix(s *Stream[T]) {
	mark := func(p *Stream[T]) bool {
		p.mixed, s.mixed = true, true
		return true
	}
	if s.namespace != "" {
		m.peers(s, s.namespace, mark)
		return
	}
	for namespace := range m.byNamespace {
		m.peers(s, namespace, mark)
	}
}

// settle gives the queue the newest state of an object among the streams that have it. by is the stream that has
// changed. A state that is older than the known one is used only if its stream has reached the known version: otherwise
// the stream is behind, and its next event about the object decides. force is for a server that was restored from a
// backup. found is false if no stream has the object.
func (m *Merger[T]) settle(by *Stream[T], key api.Key, initial, force bool) (found bool) {
	newest, has := by.members[key]
	owner := by
	m.peers(by, key.Namespace, func(p *Stream[T]) bool {
		if object, ok := p.members[key]; ok && (!has || older(newest.GetResourceVersion(), object.GetResourceVersion())) {
			newest, has, owner = object, true, p
		}
		return true
	})
	if !has {
		return false
	}
	m.release(key)
	known, exists := m.txn.Get(key)
	switch {
	case exists && api.Identical(known, newest):
	case exists && !force && older(newest.GetResourceVersion(), known.GetResourceVersion()) &&
		older(owner.reached, known.GetResourceVersion()):
	default:
		m.txn.Put(newest, initial)
	}
	return true
}

// has reports whether a stream has an object, in any state.
func (m *Merger[T]) has(object T, key api.Key) (found bool) {
	m.peers(nil, key.Namespace, func(p *Stream[T]) bool {
		member, ok := p.members[key]
		found = ok && !differentUIDs(member, object)
		return !found
	})
	return found
}

// hold makes a deletion wait if the object may have moved to a stream that has not reached the version.
func (m *Merger[T]) hold(s *Stream[T], key api.Key, last T, unknown bool, version string) (held bool) {
	h := heldDeletion[T]{stream: s, last: last, unknown: unknown, version: version, until: time.Now().Add(moveWait)}
	m.peers(s, key.Namespace, func(p *Stream[T]) bool {
		if older(h.version, p.lost) {
			h.version = p.lost
		}
		return true
	})
	if m.held == nil || !m.mayMove(h, key.Namespace) {
		return false
	}
	m.release(key)
	m.held[key] = h
	s.held++
	if m.timer == nil {
		m.timer = time.AfterFunc(moveWait, m.releaseOverdue)
	}
	return true
}

// mayMove reports whether a stream has not reached the version that a deletion waits for.
func (m *Merger[T]) mayMove(h heldDeletion[T], namespace string) (behind bool) {
	m.peers(nil, namespace, func(p *Stream[T]) bool {
		behind = p.isListed && older(p.reached, h.version)
		return !behind
	})
	return behind
}

// release forgets a held deletion.
func (m *Merger[T]) release(key api.Key) {
	h, ok := m.held[key]
	if !ok {
		return
	}
	delete(m.held, key)
	if h.stream.held--; h.stream.held == 0 {
		m.publish(h.stream)
	}
}

// releaseMatching carries out the held deletions for which ready is true, in the order of their keys.
func (m *Merger[T]) releaseMatching(ready func(api.Key, heldDeletion[T]) bool) {
	var keys []api.Key
	for key, h := range m.held {
		if ready(key, h) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	for _, key := range keys {
		h := m.held[key]
		m.release(key)
		m.txn.Delete(key, h.last, h.unknown)
	}
	if len(keys) > 0 {
		m.changed()
	}
}

// releaseOverdue carries out the deletions that have waited long enough.
func (m *Merger[T]) releaseOverdue() {
	defer m.begin().Commit()
	if m.held == nil {
		return
	}
	now := time.Now()
	m.releaseMatching(func(_ api.Key, h heldDeletion[T]) bool { return !h.until.After(now) })
	m.timer = nil
	var next time.Time
	for _, h := range m.held {
		if next.IsZero() || h.until.Before(next) {
			next = h.until
		}
	}
	if !next.IsZero() {
		m.timer = time.AfterFunc(next.Sub(now), m.releaseOverdue)
	}
}

// older reports whether version a is older than b. It is false if the versions have no order.
func older(a, b string) bool {
	order, ok := api.CompareVersions(a, b)
	return ok && order < 0
}

func compareKeys(a, b api.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// differentUIDs reports whether two objects with one key have different UIDs. An object without a UID is equal to any.
func differentUIDs(a, b api.Object) bool {
	return a.GetUID() != "" && b.GetUID() != "" && a.GetUID() != b.GetUID()
}
