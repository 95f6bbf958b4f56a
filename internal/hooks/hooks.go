package hooks

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Set is a set of functions that are told of a T. The zero value is empty.
type Set[T any] struct {
	members atomic.Pointer[[]*member[T]] // never changed, but replaced

	mu sync.Mutex // one replacement at a time
}

// member is a function with an identity, which functions have not.
type member[T any] struct{ tell func(T) }

// Add adds a function. The function that it returns removes it again, and does nothing when it is called once more.
func (s *Set[T]) Add(f func(T)) (remove func()) {
	m := &member[T]{f}
	s.replace(func(all []*member[T]) []*member[T] { return append(all, m) })
	return func() {
		s.replace(func(all []*member[T]) []*member[T] {
			return slices.DeleteFunc(all, func(other *member[T]) bool { return other == m })
		})
	}
}

func (s *Set[T]) replace(change func([]*member[T]) []*member[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := change(slices.Clone(s.list()))
	s.members.Store(&all)
}

func (s *Set[T]) list() []*member[T] {
	if all := s.members.Load(); all != nil {
		return *all
	}
	return nil
}

// Empty tells whether there is nobody to tell, for those who would have to find out first what there is to tell.
func (s *Set[T]) Empty() bool { return len(s.list()) == 0 }

// Tell calls the functions, in the order in which they were added.
func (s *Set[T]) Tell(what T) {
	for _, m := range s.list() {
		m.tell(what)
	}
}
