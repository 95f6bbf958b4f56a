package plan

import "reflect"

// Entry is memory for a key and a value of a map. Reflection copies from it.
type Entry struct{ Key, Value reflect.Value }

// Scratch keeps such memory between the objects of one answer, indexed by the number of the map's type in a plan. A nil
// Scratch keeps nothing.
type Scratch struct {
	entries []Entry
	slices  []reflect.Value // pointers to empty slices, by the number of the type
}

// Take returns an empty Entry, which no other caller gets until it is returned: a map may contain another map of its
// type.
func (s *Scratch) Take(at int, t reflect.Type) Entry {
	if s != nil && at < len(s.entries) && s.entries[at].Key.IsValid() {
		e := s.entries[at]
		s.entries[at] = Entry{}
		return e
	}
	return Entry{reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()}
}

// Put returns an entry to the scratch.
func (s *Scratch) Put(at int, e Entry) {
	if s == nil {
		return
	}
	if at >= len(s.entries) {
		s.entries = append(s.entries, make([]Entry, at+1-len(s.entries))...)
	}
	s.entries[at] = e
}

// MoveTo stores the Entry in a map and clears the entry.
func (e Entry) MoveTo(m reflect.Value) {
	m.SetMapIndex(e.Key, e.Value)
	e.Key.SetZero()
	e.Value.SetZero()
}

// Slice returns a pointer to an empty slice of type t.
func (s *Scratch) Slice(at int, t reflect.Type) reflect.Value {
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
