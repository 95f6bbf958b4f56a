package store

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/internal/registry"
)

// State is the state of a whole store at one version. It never changes, and the history need not reach back to it. It
// is cheap because it shares its memory with the store.
type State struct {
	version uint64
	bytes   int
	roots   map[schema.GroupResource]*node
}

// State returns the present state. The caller does not hold the lock.
func (s *Store) State() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &State{version: s.version, bytes: s.bytes, roots: map[schema.GroupResource]*node{}}
	for gr, c := range s.collections {
		out.roots[gr] = c.root
	}
	return out
}

// Assemble returns a state of records. An alias has those of its resource. UIDs that the store generates later differ
// from theirs. The caller holds the lock.
func (s *Store) Assemble(version uint64, records map[schema.GroupResource][]*Record) *State {
	out := &State{version: version, roots: map[schema.GroupResource]*node{}}
	for gr, all := range records {
		var root *node
		for _, r := range all {
			root = root.set(r)
			out.bytes += r.Size()
			s.names.avoid(string(r.UID()))
		}
		out.roots[gr] = root
	}
	for gr, c := range s.collections {
		if of := c.Definition().Alias; of.Resource != "" {
			out.roots[gr] = out.roots[of]
		}
	}
	return out
}

// Version returns the version of the state.
func (s *State) Version() uint64 { return s.version }

// View returns the state of one collection, which is empty if the state does not have the collection.
func (s *State) View(gr schema.GroupResource) View {
	return View{Version: s.version, root: s.roots[gr]}
}

// Restore makes a state the present one. It deletes the history and ends every cursor. The caller holds the lock.
func (s *Store) Restore(to *State) {
	s.version, s.bytes = to.version, to.bytes
	for gr, c := range s.collections {
		c.root = to.roots[gr]
		c.start(&change{version: to.version})
		c.epoch++
		c.reclaim()
		c.changed.Fire()
	}
	s.mayCollect()
	s.advanced.Fire()
	s.restored.Fire()
}

// Fork returns a store with the state, the version and the resources of this one. Both share the memory of the objects,
// and neither sees what happens to the other one later. The fork has no history, as after Compact. definitions replace
// those of their resources. The caller holds the lock.
func (s *Store) Fork(definitions []*registry.Definition) *Store {
	out := s.Empty()
	out.bytes = s.bytes
	for _, c := range s.order {
		d := c.Definition()
		out.Define(d)
		if d.Alias.Resource == "" {
			fork := out.collections[d.GroupResource()]
			fork.root = c.root
			fork.start(fork.base)
		}
	}
	for _, d := range definitions {
		out.Define(d)
	}
	for _, c := range out.order {
		if d := c.Definition().Fresh(); d != c.Definition() {
			out.Define(d)
			c.reclaim()
		}
	}
	select {
	case <-s.garbage:
		out.mayCollect()
	default:
	}
	out.logs.containers = s.logs.copies()
	return out
}
