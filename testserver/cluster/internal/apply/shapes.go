package apply

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leatproject/leat/testserver/internal/object"
)

// Limits of a table of shapes. A full table is emptied: the next creation of each shape then costs as much as the
// first.
const (
	maxShapes    = 64
	maxShapeSize = 16 << 10
)

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

// appendShape appends everything of a value that its owner's fields depend on, and reports whether value is a JSON
// value of at most maxShapeSize. It writes the names of members and the types of values. It writes scalars
//
//   - in lists, because the keys of a list's items and the items of sets are part of the paths of fields; other lists
//     are written too, because the schema is not consulted,
//   - where the empty object has a scalar, because a field with an equal value has no owner.
func appendShape(to []byte, value, empty any, inList bool) ([]byte, bool) {
	if len(to) > maxShapeSize {
		return to, false
	}
	whole := inList
	switch empty.(type) {
	case nil, object.Tree, []any:
	default:
		whole = true
	}
	switch v := value.(type) {
	case nil:
		return append(to, 'n'), true
	case object.Tree:
		base, _ := empty.(object.Tree)
		to = append(to, '{')
		var room [16]string // on the stack: most objects have fewer members
		names := room[:0]
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			to = appendText(to, name)
			var ok bool
			if to, ok = appendShape(to, v[name], base[name], inList); !ok {
				return to, false
			}
		}
		return append(to, '}'), true
	case []any:
		to = append(to, '[')
		for _, item := range v {
			var ok bool
			if to, ok = appendShape(to, item, nil, true); !ok {
				return to, false
			}
		}
		return append(to, ']'), true
	case string:
		if !whole {
			return append(to, 's'), true
		}
		return appendText(append(to, 'S'), v), true
	case bool:
		if whole && v {
			return append(to, 't'), true
		}
		return append(to, 'b'), true
	case int64:
		if !whole {
			return append(to, 'i'), true
		}
		return binary.AppendVarint(append(to, 'I'), v), true
	}
	return to, false // a float, which is rare in objects
}

// appendText appends a text after its length, so that different texts are never written alike.
func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}
