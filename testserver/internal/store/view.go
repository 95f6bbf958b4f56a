package store

import (
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
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

// Computed returns the objects of a resource that is not stored. The caller does not hold the lock.
func (s *Store) Computed(d *registry.Definition) View {
	state := s.State()
	v := View{Version: state.version}
	for _, tree := range d.Compute(func(gr schema.GroupResource) iter.Seq[object.Tree] {
		return func(yield func(object.Tree) bool) {
			for r := range state.View(gr).All() {
				if !yield(r.Tree()) {
					return
				}
			}
		}
	}) {
		r, err := NewRecord(d, tree, 0)
		if err != nil {
			panic(err.Error()) // this server has made the tree
		}
		v.root = v.root.set(r)
	}
	return v
}

// Same reports whether two views have the same objects in the same versions. It may be false although they do.
func (v View) Same(o View) bool { return v.root == o.root }

// Get returns an object, or nil.
func (v View) Get(key api.Key) *Record { return v.root.get(pathOf(key)) }

// Len returns the number of objects.
func (v View) Len() int { return v.root.len() }

// All yields the objects in the order of lists.
func (v View) All() iter.Seq[*Record] { return v.root.scan("", "") }
