package deltafifo

import (
	"slices"
	"time"

	"github.com/leatproject/leat/api"
)

// moveWait is how long a deletion may wait for another scope, to which the object may have moved.
const moveWait = time.Second

// Scopes lets several producers fill one queue: each Scope has its own objects, list and version. The queue must not
// get changes in another way. Its batches have a ScopedBatch, no ResourceVersion and no InitialList.
//
// An object may be in several scopes, if their selectors overlap. The queue then has its newest state, and deletes it
// when no scope has it any more. Scopes with different namespaces cannot have a common object and do not wait for each
// other.
//
// Rule: a deletion waits for at most a second while another scope of the namespace has not reached its version. Reason:
// the object may have moved to that scope, and then the change is an update. The version of the scope that lost the
// object waits too, so that no version is ahead of the objects. Price: such scopes show deletions late.
//
// All methods may be called on any goroutine. They take the mutex of the queue.
type Scopes[T api.Object] struct {
	q *DeltaFIFO[T]

	// The mutex of the queue guards the fields below.
	byNamespace map[string][]*Scope[T] // scopes of all namespaces have the key ""
	slots       []*Scope[T]            // nil if the slot is free
	free        []int
	newest      string // the newest version of all scopes
	held        map[api.Key]heldDeletion[T]
	timer       *time.Timer // for the deletion that was held first; nil while held is empty

	unlisted  int  // scopes that Complete waits for and that have no list
	complete  bool // Complete was called
	announced bool // a batch with ScopedBatch.Complete was taken

	// What the next batch says. published are the scopes whose version has changed, and versions those of the last
	// batch. layout reports that scopes were added or removed.
	published []*Scope[T]
	versions  *scopeVersions
	layout    bool
	applied   []chan struct{}
}

// heldDeletion is a deletion that waits for other scopes.
type heldDeletion[T api.Object] struct {
	scope   *Scope[T]
	last    T
	unknown bool // the final state
	version string
	until   time.Time
}

// NewScopes returns the scopes of a queue, which must be new. There is no scope yet.
func NewScopes[T api.Object](q *DeltaFIFO[T]) *Scopes[T] {
	m := &Scopes[T]{q: q, byNamespace: map[string][]*Scope[T]{}, held: map[api.Key]heldDeletion[T]{}, versions: &scopeVersions{}}
	q.scoped = m
	return m
}

// Add adds a scope of one namespace, or of all namespaces if it is empty. The scope has no list yet.
func (m *Scopes[T]) Add(namespace string, selector api.Selector) *Scope[T] {
	s := &Scope[T]{set: m, namespace: namespace, selector: selector, members: map[api.Key]T{}, listed: make(chan struct{})}
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	if n := len(m.free); n > 0 {
		s.slot, m.free = m.free[n-1], m.free[:n-1]
		m.slots[s.slot] = s
	} else {
		s.slot = len(m.slots)
		m.slots = append(m.slots, s)
	}
	m.mix(s)
	m.byNamespace[namespace] = append(m.byNamespace[namespace], s)
	m.changeLayout(s)
	if !m.complete {
		s.awaited = true
		m.unlisted++
	}
	return s
}

// Complete says that the scopes so far are those that the first state of the collection consists of.
func (m *Scopes[T]) Complete() {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	m.complete = true
	m.changed()
}

// Selectors returns the selector of each scope that can have objects of a namespace. In contrast to api.Scopes, it says
// what is true now, and not what the last batch says.
func (m *Scopes[T]) Selectors(namespace string) []api.Selector {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	var all []api.Selector
	m.peers(nil, namespace, func(s *Scope[T]) bool {
		all = append(all, s.selector)
		return true
	})
	return all
}

// Newest returns the newest version that a scope has reached. It is empty before the first list, and if versions have
// no order.
func (m *Scopes[T]) Newest() string {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	return m.newest
}

// Stop ends the wait of deletions, which then remain undone. It is for a queue without a consumer.
func (m *Scopes[T]) Stop() {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	if m.timer != nil {
		m.timer.Stop()
	}
	m.timer, m.held = nil, nil
}

// changeLayout notes that a scope was added or removed.
func (m *Scopes[T]) changeLayout(s *Scope[T]) {
	m.layout = true
	m.publish(s)
}

// publish makes the version of a scope part of the next batch.
func (m *Scopes[T]) publish(s *Scope[T]) {
	if !s.pending {
		s.pending = true
		m.published = append(m.published, s)
	}
	m.changed()
}

// changed makes the consumer take a batch.
func (m *Scopes[T]) changed() {
	m.q.markDirty()
	m.q.signal()
}

// take returns what the next batch says.
func (m *Scopes[T]) take() *ScopedBatch {
	if len(m.published) > 0 || m.layout {
		m.versions = m.nextVersions()
	}
	b := &ScopedBatch{Scopes: m.versions, Applied: m.applied}
	m.applied = nil
	if m.complete && m.unlisted == 0 && !m.announced {
		m.announced, b.Complete = true, true
	}
	return b
}

// peers calls f with the other scopes that can have objects of a namespace, until f returns false.
func (m *Scopes[T]) peers(s *Scope[T], namespace string, f func(*Scope[T]) bool) {
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

// mix notes that a new scope and others can have common objects, from now on.
func (m *Scopes[T]) mix(s *Scope[T]) {
	mark := func(p *Scope[T]) bool {
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

// settle makes the newest state of an object, among the scopes that have it, the one that the queue knows. by is the
// scope that has changed. A state that is older than the known one is used only if its scope has reached the known
// version: otherwise the scope is behind, and its next event about the object decides. force is for a server that was
// restored from a backup. found is false if no scope has the object.
func (m *Scopes[T]) settle(by *Scope[T], key api.Key, initial, force bool) (found bool) {
	newest, has := by.members[key]
	owner := by
	m.peers(by, key.Namespace, func(p *Scope[T]) bool {
		if object, ok := p.members[key]; ok && (!has || older(newest.GetResourceVersion(), object.GetResourceVersion())) {
			newest, has, owner = object, true, p
		}
		return true
	})
	if !has {
		return false
	}
	m.release(key)
	known, exists := m.q.known[key]
	switch {
	case exists && api.Identical(known.object, newest):
	case exists && !force && older(newest.GetResourceVersion(), known.object.GetResourceVersion()) &&
		older(owner.reached, known.object.GetResourceVersion()):
	default:
		m.q.put(newest, initial)
	}
	return true
}

// hold makes a deletion wait if the object may have moved to a scope that has not reached the version.
func (m *Scopes[T]) hold(s *Scope[T], key api.Key, last T, unknown bool, version string) (held bool) {
	h := heldDeletion[T]{scope: s, last: last, unknown: unknown, version: version, until: time.Now().Add(moveWait)}
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

// mayMove reports whether a scope has not reached the version of a deletion.
func (m *Scopes[T]) mayMove(h heldDeletion[T], namespace string) (behind bool) {
	m.peers(h.scope, namespace, func(p *Scope[T]) bool {
		behind = p.isListed && older(p.reached, h.version)
		return !behind
	})
	return behind
}

// end deletes an object that no scope has. A scope that was behind may have had an older object of the same name.
func (m *Scopes[T]) end(key api.Key, last T, unknown, silent bool) {
	known, exists := m.q.known[key]
	if !exists {
		return
	}
	if differentUIDs(known.object, last) {
		last, unknown = known.object, true
	}
	delete(m.q.known, key)
	change := api.Change[T]{Type: api.Deleted, Object: last, FinalStateUnknown: unknown, Silent: silent}
	m.q.buffer.deleted[key] = m.q.record(known.position, key, change)
}

// release forgets a held deletion.
func (m *Scopes[T]) release(key api.Key) {
	h, ok := m.held[key]
	if !ok {
		return
	}
	delete(m.held, key)
	if h.scope.held--; h.scope.held == 0 {
		m.publish(h.scope)
	}
}

// releaseMatching carries out the held deletions for which ready is true, in the order of their keys.
func (m *Scopes[T]) releaseMatching(ready func(api.Key, heldDeletion[T]) bool) {
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
		m.end(key, h.last, h.unknown, false)
	}
	if len(keys) > 0 {
		m.changed()
	}
}

// releaseOverdue carries out the deletions that have waited long enough.
func (m *Scopes[T]) releaseOverdue() {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
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
