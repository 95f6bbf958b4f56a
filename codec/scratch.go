package codec

import "reflect"

// entry is room for a key and a value of a map, which reflection copies from.
type entry struct{ key, value reflect.Value }

// scratch keeps such room between the objects of one answer, by the number of the map's type in a plan. A nil scratch
// keeps nothing.
type scratch struct {
	entries []entry
	slices  []reflect.Value // pointers to slices, all of them empty, by the number of the type
}

// take returns room that is empty, and that nobody else gets until it is put back: a map may hold another of its type.
func (s *scratch) take(at int, t reflect.Type) entry {
	if s != nil && at < len(s.entries) && s.entries[at].key.IsValid() {
		e := s.entries[at]
		s.entries[at] = entry{}
		return e
	}
	return entry{reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()}
}

func (s *scratch) put(at int, e entry) {
	if s == nil {
		return
	}
	if at >= len(s.entries) {
		s.entries = append(s.entries, make([]entry, at+1-len(s.entries))...)
	}
	s.entries[at] = e
}

// moveTo puts the entry into a map and leaves the room empty.
func (e entry) moveTo(m reflect.Value) {
	m.SetMapIndex(e.key, e.value)
	e.key.SetZero()
	e.value.SetZero()
}

// slice returns a pointer to an empty slice of type t.
func (s *scratch) slice(at int, t reflect.Type) reflect.Value {
	if s == nil {
		return reflect.New(t)
	}
	if at >= len(s.slices) {
		s.slices = append(s.slices, make([]reflect.Value, at+1-len(s.slices))...)
	}
	if !s.slices[at].IsValid() {
		s.slices[at] = reflect.New(t)
	}
	return s.slices[at]
}
