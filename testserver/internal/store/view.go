package store

import (
	"iter"

	"github.com/leatproject/leat/api"
)

// View is the state of one collection at one version. It never changes.
type View struct {
	Version uint64
	root    *node
}

// View returns the present state of a collection. The caller does not hold the lock.
func (s *Store) View(c *Collection) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return View{Version: s.version, root: c.root}
}

// ViewAt returns the state of a collection at a version that the store has reached. ok is false if the history does not
// reach back to it. The caller does not hold the lock.
func (s *Store) ViewAt(c *Collection, version uint64) (v View, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := c.after(version)
	if !ok {
		return View{}, false
	}
	return View{Version: version, root: c.rootAfter(last)}, true
}

// Same reports whether two views have the same objects in the same versions. It may be false although they do.
func (v View) Same(o View) bool { return v.root == o.root }

// Get returns an object, or nil.
func (v View) Get(key api.Key) *Record { return v.root.get(pathOf(key)) }

// Len returns the number of objects.
func (v View) Len() int { return v.root.len() }

// All yields the objects in the order of lists.
func (v View) All() iter.Seq[*Record] { return v.root.scan("", "") }
