package typed

import (
	"encoding/base64"
	"encoding/binary"
	"reflect"
	"slices"

	"github.com/leatproject/leat/testserver/internal/object"
)

const maxShapeSize = 16 << 10

// AppendShape appends everything of a value that its owner's fields depend on, and reports whether value is a JSON
// value, whose shape has at most 16 KiB. It writes the names of members and the types of values. It writes scalars
//
//   - in lists, because the keys of a list's items and the items of sets are part of the paths of fields; other lists
//     are written too, because the schema is not consulted,
//   - where the empty object has a scalar, because a field with an equal value has no owner.
//
// Members have the shapes of their trees.
func AppendShape(to []byte, value, empty any) ([]byte, bool) {
	return appendShape(to, value, empty, false)
}

// scalars reports whether the shape contains the scalars of a value.
func scalars(empty any, inList bool) bool {
	switch empty.(type) {
	case nil, object.Tree, []any:
		return inList
	}
	return true
}

func appendShape(to []byte, value, empty any, inList bool) ([]byte, bool) {
	if len(to) > maxShapeSize {
		return to, false
	}
	whole := scalars(empty, inList)
	switch v := value.(type) {
	case nil:
		return append(to, 'n'), true
	case object.Tree:
		return appendTreeShape(to, v, empty, inList)
	case *Member:
		return v.appendShape(to, v.value, empty, inList)
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
		return appendTextShape(to, v, whole), true
	case bool:
		return appendFlagShape(to, v, whole), true
	case int64:
		return appendIntegerShape(to, v, whole), true
	}
	return to, false // a float, which is rare in objects
}

func appendTreeShape(to []byte, m object.Tree, empty any, inList bool) ([]byte, bool) {
	base, _ := empty.(object.Tree)
	to = append(to, '{')
	var room [16]string // on the stack: most objects have fewer members
	names := room[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		to = AppendText(to, name)
		var ok bool
		if to, ok = appendShape(to, m[name], base[name], inList); !ok {
			return to, false
		}
	}
	return append(to, '}'), true
}

func appendTextShape(to []byte, text string, whole bool) []byte {
	if !whole {
		return append(to, 's')
	}
	return AppendText(append(to, 'S'), text)
}

func appendFlagShape(to []byte, flag, whole bool) []byte {
	if whole && flag {
		return append(to, 't')
	}
	return append(to, 'b')
}

func appendIntegerShape(to []byte, n int64, whole bool) []byte {
	if !whole {
		return append(to, 'i')
	}
	return binary.AppendVarint(append(to, 'I'), n)
}

// AppendText appends a text after its length, so that different texts are never written alike.
func AppendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// appendShape appends the shape of the tree that a Go value becomes.
func (p *plan) appendShape(to []byte, v reflect.Value, empty any, inList bool) ([]byte, bool) {
	if len(to) > maxShapeSize || p.err != nil {
		return to, false
	}
	whole := scalars(empty, inList)
	switch p.form {
	case text:
		return appendTextShape(to, v.String(), whole), true
	case flag:
		return appendFlagShape(to, v.Bool(), whole), true
	case integer:
		return appendIntegerShape(to, v.Int(), whole), true
	case record:
		return p.appendRecordShape(to, v, empty, inList)
	case float, unsigned, converted:
		part, err := p.tree(v)
		if err != nil {
			return to, false
		}
		return appendShape(to, part, empty, inList)
	}
	if v.IsNil() {
		return append(to, 'n'), true
	}
	switch p.form {
	case pointer:
		return p.elem.appendShape(to, v.Elem(), empty, inList)
	case blob:
		if !whole {
			return append(to, 's'), true
		}
		return appendTextShape(to, base64.StdEncoding.EncodeToString(v.Bytes()), true), true
	case list:
		to = append(to, '[')
		for i := range v.Len() {
			var ok bool
			if to, ok = p.elem.appendShape(to, v.Index(i), nil, true); !ok {
				return to, false
			}
		}
		return append(to, ']'), true
	}
	return p.appendDictionaryShape(to, v, empty, inList)
}

func (p *plan) appendRecordShape(to []byte, v reflect.Value, empty any, inList bool) ([]byte, bool) {
	base, _ := empty.(object.Tree)
	to = append(to, '{')
	for i := range p.fields {
		f := &p.fields[i]
		member, ok := f.present(v)
		if !ok {
			continue
		}
		if to, ok = f.appendShape(AppendText(to, f.name), member, base[f.name], inList); !ok {
			return to, false
		}
	}
	return append(to, '}'), true
}

func (p *plan) appendDictionaryShape(to []byte, v reflect.Value, empty any, inList bool) ([]byte, bool) {
	base, _ := empty.(object.Tree)
	to = append(to, '{')
	for _, key := range sortedKeys(v) {
		name, ok := key.String(), false
		to = AppendText(to, name)
		if to, ok = p.elem.appendShape(to, v.MapIndex(key), base[name], inList); !ok {
			return to, false
		}
	}
	return append(to, '}'), true
}
