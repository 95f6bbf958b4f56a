package store

import "github.com/leatproject/leat/testserver/internal/registry"

// Cursor is a place in the history of a collection: a watch. It moves when Next returns a change.
type Cursor struct {
	c     *Collection
	at    *change // the last change that was looked at
	from  uint64  // changes up to this version are skipped
	epoch int
	def   *registry.Definition // of the collection when the cursor was made
}

// Cursor returns the place after a version. If the history does not reach back to the version, it returns nil and the
// oldest version that it reaches back to. The caller does not hold the lock.
func (s *Store) Cursor(c *Collection, version uint64) (cursor *Cursor, oldest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := c.after(version)
	if !ok {
		return nil, c.base.version
	}
	cursor = &Cursor{c: c, at: at, from: version, epoch: c.epoch, def: c.Definition()}
	return cursor, c.base.version
}

// Step is what a cursor found: one change, or nothing, or its end.
type Step struct {
	Version uint64  // of the change; without a change, that of the store
	Before  *Record // nil if the object is new
	After   *Record // nil if the object was deleted
	Deleted *Record // of a deletion: the last state, with the version of the deletion

	None bool // there is no change
	// Changed closes at the next change after None.
	Changed <-chan struct{}
	Ended   bool // the cursor is too far behind, or the resource is not served any more, or not by the same rules
	Cut     bool // the store was restored
}

// Next returns the next change up to the version limit. A cursor that is behind by more than backlog changes ends;
// backlog zero means no limit. The caller does not hold the lock.
func (s *Store) Next(cursor *Cursor, limit uint64, backlog int) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := cursor.c
	if cursor.epoch != c.epoch {
		return Step{Cut: true}
	}
	if backlog > 0 && c.tail.number-cursor.at.number > uint64(backlog) {
		return Step{Ended: true}
	}
	for ch := cursor.at.next; ch != nil && ch.version <= limit; ch = ch.next {
		cursor.at = ch
		if !ch.empty() && ch.version > cursor.from {
			return Step{Version: ch.version, Before: ch.before, After: ch.after, Deleted: ch.deleted}
		}
	}
	if c.retired || c.Definition() != cursor.def && !cursor.def.Untyped {
		return Step{Ended: true}
	}
	return Step{Version: min(s.version, limit), None: true, Changed: c.changed.Wait()}
}
