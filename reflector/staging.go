package reflector

import (
	"slices"

	"github.com/leatproject/leat/api"
)

// staging holds a list in progress. Nothing of it reaches the store before it is complete, so that a list which breaks
// off leaves no trace.
type staging[T api.Object] struct {
	objects []T
	// position is where each object is. It is nil as long as each comes but once: in pages, and in a streaming list until
	// the initial objects are through and changes follow.
	position map[api.Key]int

	refused    int  // malformed objects that came
	incomplete bool // one of them has no key, and may be any object of the collection
}

// stagingFor makes room for about n objects.
func stagingFor[T api.Object](n int) *staging[T] {
	return &staging[T]{objects: make([]T, 0, n)}
}

// index lets objects be found, replaced and removed.
func (s *staging[T]) index() {
	s.position = make(map[api.Key]int, len(s.objects))
	all := s.objects
	s.objects = all[:0]
	for _, object := range all {
		s.put(object)
	}
	clear(all[len(s.objects):])
}

// get finds an object, if there is an index.
func (s *staging[T]) get(key api.Key) (T, bool) {
	if i, ok := s.position[key]; ok {
		return s.objects[i], true
	}
	var none T
	return none, false
}

func (s *staging[T]) put(object T) {
	if s.position != nil {
		key := api.KeyOf(object)
		if i, ok := s.position[key]; ok {
			s.objects[i] = object
			return
		}
		s.position[key] = len(s.objects)
	}
	if len(s.objects) == cap(s.objects) {
		s.objects = slices.Grow(s.objects, len(s.objects)) // append alone leaves four times the list behind
	}
	s.objects = append(s.objects, object)
}

// remove fills the gap with the last object: the order of a list is no promise.
func (s *staging[T]) remove(key api.Key) {
	i, ok := s.position[key]
	if !ok {
		return
	}
	last := len(s.objects) - 1
	s.objects[i] = s.objects[last]
	s.position[api.KeyOf(s.objects[i])] = i
	s.truncate(last)
	delete(s.position, key)
}

// truncate keeps the first n objects.
func (s *staging[T]) truncate(n int) {
	clear(s.objects[n:])
	s.objects = s.objects[:n]
}
