package hooks

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Set is a set of hooks: functions, or structs of functions. The zero value is empty.
type Set[H any] struct {
	members atomic.Pointer[[]*H] // the slice is never changed, but replaced

	mu sync.Mutex // held during a replacement
}

// Add adds a hook and returns a function that removes it. A second call of the returned function does nothing.
func (s *Set[H]) Add(hook H) (remove func()) {
	m := &hook // its identity, because functions cannot be compared
	s.replace(func(all []*H) []*H { return append(all, m) })
	return func() {
		s.replace(func(all []*H) []*H {
			return slices.DeleteFunc(all, func(other *H) bool { return other == m })
		})
	}
}

func (s *Set[H]) replace(change func([]*H) []*H) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := change(slices.Clone(s.All()))
	s.members.Store(&all)
}

// All returns the present hooks, in the order in which they were added. The slice must not be changed.
func (s *Set[H]) All() []*H {
	if all := s.members.Load(); all != nil {
		return *all
	}
	return nil
}
