package reflector

import "github.com/leatproject/leat/api"

// staging holds a list in progress. Nothing of it reaches the store before it is complete, so that a list which breaks
// off leaves no trace.
type staging[T api.Object] struct {
	objects  []T
	position map[api.Key]int // made only for a streaming list, in which objects can change under way
}

func newStaging[T api.Object]() *staging[T] {
	return &staging[T]{position: map[api.Key]int{}}
}

func (s *staging[T]) get(key api.Key) (T, bool) {
	if i, ok := s.position[key]; ok {
		return s.objects[i], true
	}
	var none T
	return none, false
}

func (s *staging[T]) put(object T) {
	key := api.KeyOf(object)
	if i, ok := s.position[key]; ok {
		s.objects[i] = object
		return
	}
	s.position[key] = len(s.objects)
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
	clear(s.objects[last:])
	s.objects = s.objects[:last]
	delete(s.position, key)
}
