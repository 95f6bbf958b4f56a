package apply

import (
	"maps"
	"sync"
	"time"

	"github.com/leatproject/leat/testserver/cluster/internal/typed"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
)

// maxShapes limits a table of shapes. A full table is emptied: the next creation of each shape then costs as much as
// the first.
const maxShapes = 64

// shapes keep the entry of metadata.managedFields that a creation gets, by the shape of the object. Objects of one
// shape get the same entry except for its time, and most creations repeat a shape. Computing an entry takes an eighth
// of the processor time of a creation.
type shapes struct {
	mu    sync.Mutex // guards the field below
	known map[string]object.Tree
}

// get returns a copy of the entry of a shape. The copies share the set of fields, which nobody changes.
func (s *shapes) get(shape []byte) (object.Tree, bool) {
	s.mu.Lock()
	entry, ok := s.known[string(shape)]
	s.mu.Unlock() // entries never change
	if !ok {
		return nil, false
	}
	entry = maps.Clone(entry)
	entry["time"] = time.Now().UTC().Format(time.RFC3339)
	return entry, true
}

// put keeps a copy of the entry of a shape.
func (s *shapes) put(shape []byte, entry object.Tree) {
	entry = copied(entry).(object.Tree)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxShapes {
		clear(s.known)
	}
	if s.known == nil {
		s.known = map[string]object.Tree{}
	}
	s.known[string(shape)] = entry
}

// appendShape appends the shape of a new object and its writer. ok is false if the shape is too long, and if the object
// brings managers.
func appendShape(to []byte, by registry.Manager, empty, after object.Tree) (shape []byte, ok bool) {
	meta, _ := after["metadata"].(object.Tree)
	if _, brought := meta["managedFields"]; brought || meta == nil {
		return nil, false
	}
	for _, text := range []string{by.Name, by.Served, by.Subresource} {
		to = typed.AppendText(to, text)
	}
	return typed.AppendShape(to, after, empty)
}
