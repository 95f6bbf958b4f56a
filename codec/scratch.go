package codec

import "reflect"

// entry is memory for a key and a value of a map. Reflection copies from it.
type entry struct{ key, value reflect.Value }

// scratch keeps such memory between the objects of one answer, indexed by the number of the map's type in a plan. A nil
// scratch keeps nothing.
type scratch struct {
	entries []entry
	slices  []reflect.Value // pointers to empty slices, by the number of the type
}

// take returns an empty entry, which no other caller gets until it is returned: a map may contain another map of its
// type.
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

// moveTo stores the entry in a map and clears the entry.
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
