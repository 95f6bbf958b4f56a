package reflector

import (
	"slices"

	"github.com/leatproject/leat/api"
)

// staging contains the objects of a list in progress, each key once. The store gets the list when it is complete, so an
// incomplete list changes nothing.
type staging[T api.Object] struct {
	objects []T
	// position is the index of each key in objects. It is nil while objects come in ascending order, as servers send
	// them: then no key comes twice, and the list needs no map.
	position map[api.Key]int

	skipped    int  // undecodable and malformed objects that arrived
	incomplete bool // a malformed object has no usable key, so it may be any object of the collection
}

// stagingFor returns a staging with room for n objects.
func stagingFor[T api.Object](n int) *staging[T] {
	return &staging[T]{objects: make([]T, 0, n)}
}

// ascends reports whether a key is greater than all staged keys. It is false once an object came out of order.
func (s *staging[T]) ascends(key api.Key) bool {
	return s.position == nil && (len(s.objects) == 0 || precedes(api.KeyOf(s.objects[len(s.objects)-1]), key))
}

// precedes reports whether key a comes before b in the order of etcd, which is by path: "a-b/x" precedes "a/x".
func precedes(a, b api.Key) bool {
	if a.Namespace == b.Namespace {
		return a.Name < b.Name
	}
	n := min(len(a.Namespace), len(b.Namespace))
	if a.Namespace[:n] != b.Namespace[:n] {
		return a.Namespace < b.Namespace
	}
	if len(a.Namespace) == n {
		return '/' < b.Namespace[n]
	}
	return a.Namespace[n] < '/'
}

// get returns the staged object of a key.
func (s *staging[T]) get(key api.Key) (T, bool) {
	if !s.ascends(key) {
		s.index()
		if i, ok := s.position[key]; ok {
			return s.objects[i], true
		}
	}
	var none T
	return none, false
}

// index fills position.
func (s *staging[T]) index() {
	if s.position != nil {
		return
	}
	s.position = make(map[api.Key]int, len(s.objects))
	for i, object := range s.objects {
		s.position[api.KeyOf(object)] = i
	}
}

// put replaces the object of the same key, or appends the object.
func (s *staging[T]) put(object T) {
	key := api.KeyOf(object)
	if !s.ascends(key) {
		s.index()
		if i, ok := s.position[key]; ok {
			s.objects[i] = object
			return
		}
		s.position[key] = len(s.objects)
	}
	if len(s.objects) == cap(s.objects) {
		s.objects = slices.Grow(s.objects, len(s.objects)) // append alone would allocate four times the list in total
	}
	s.objects = append(s.objects, object)
}

// remove deletes the object of a key. The last object takes its place, because a list has no guaranteed order.
func (s *staging[T]) remove(key api.Key) {
	s.index()
	i, ok := s.position[key]
	if !ok {
		return
	}
	last := len(s.objects) - 1
	s.objects[i] = s.objects[last]
	s.position[api.KeyOf(s.objects[i])] = i
	delete(s.position, key)
	clear(s.objects[last:])
	s.objects = s.objects[:last]
}

// truncate keeps the first n objects.
func (s *staging[T]) truncate(n int) {
	n = min(n, len(s.objects))
	for _, object := range s.objects[n:] {
		delete(s.position, api.KeyOf(object))
	}
	clear(s.objects[n:])
	s.objects = s.objects[:n]
}
