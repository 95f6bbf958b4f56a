package hooks

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Set is a set of functions that are called with a T. The zero value is empty.
type Set[T any] struct {
	members atomic.Pointer[[]*member[T]] // the slice is never changed, but replaced

	mu sync.Mutex // held during a replacement
}

// member is a function with an identity; functions cannot be compared.
type member[T any] struct{ tell func(T) }

// Add adds a function and returns a function that removes it. A second call of the returned function does nothing.
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

// Empty reports whether the set is empty, so that a caller can skip computing the argument of Tell.
func (s *Set[T]) Empty() bool { return len(s.list()) == 0 }

// Tell calls the functions, in the order in which they were added.
func (s *Set[T]) Tell(what T) {
	for _, m := range s.list() {
		m.tell(what)
	}
}
