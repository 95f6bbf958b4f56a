package wireplan

import (
	"errors"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/codec/internal/plan"
)

// shareKind says what objects share if a field has equal bytes in both.
type shareKind uint8

const (
	shareNothing shareKind = iota
	shareSlice             // the elements of a slice, all together
	shareMap
	sharePointer // the target of a pointer to a message
	// shareStruct is for the structs of an object, such as spec. Their content is copied from the last object that has
	// it, with what it refers to.
	shareStruct
)

const (
	// minPart is the smallest size of a shared part, in bytes. A smaller part is decoded faster than found.
	minPart = 24
	// maxPartDepth limits where parts are shared, so that a shared part nests only a little deeper than one that was
	// decoded.
	maxPartDepth = 64
)

// errRepeated ends the decoding of an object with shared parts in which a field comes twice. Both are merged, which
// would change what other objects share. No encoder of Kubernetes writes that.
var errRepeated = errors.New("a field that comes twice")

// shareOf returns what the objects share of a field of type t. Values are not shared if a type in them decodes itself:
// it may do anything with them later.
func (c *compiler) shareOf(f *messageField, t reflect.Type) shareKind {
	switch {
	case !isPlain(t, map[reflect.Type]bool{}):
		return shareNothing
	case f.kind == fieldPointer && f.elem.Size() > 0:
		return sharePointer
	case f.kind == fieldSlice && f.slice.size > 0 && (f.message != nil || t.Elem().Kind() == reflect.String):
		return shareSlice
	case f.kind == fieldOther && t.Kind() == reflect.Map:
		return shareMap
	default:
		return shareNothing
	}
}

// shareStructs lets objects share their structs. The metadata and the status differ in nearly each version, so only
// their maps and slices are shared. The maps and slices of metadata, and the structs, are kept when they come for the
// first time, because the next state of the object has them too. Other parts are kept when they come for the second
// time. A struct that refers to nothing except strings is decoded faster than found. p is the plan of the objects.
func (p *messagePlan) shareStructs(object reflect.Type) {
	if metadata := p.field(ObjectMetadata).message; metadata != nil {
		for _, f := range metadata.fields {
			if f != nil {
				f.part.KeepFirst = f.number != managedFields
			}
		}
	}
	if plan.IsRecursive(object) {
		return // the plan also decodes other values, and their memory may be used again
	}
	for _, f := range p.fields {
		if f != nil && f.kind == fieldMessage && f.number != ObjectMetadata && f.number < 64 && f.name != "status" && plan.HasReferences(f.typ) && isPlain(f.typ, map[reflect.Type]bool{}) {
			f.share, f.part.KeepFirst = shareStruct, true
		}
	}
}

// isPlain reports whether no type within t decodes itself, except those that this package knows.
func isPlain(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch {
	case seen[t] || isKnown(t):
		return true
	case ownsWire(t):
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return isPlain(t.Elem(), seen)
	case reflect.Map:
		return isPlain(t.Key(), seen) && isPlain(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if _, _, numbered := wireNumber(t.Field(i)); (numbered || t.Field(i).Anonymous) && !isPlain(t.Field(i).Type, seen) {
				return false
			}
		}
	}
	return true
}

// Share lets the objects that the reader decodes share parts. p may be nil.
func (r *Reader) Share(p *plan.Parts) {
	if r.parts = p; p != nil {
		r.hasher = &plan.Hasher{}
	}
}

// Updates tells the reader whether the following objects are new states of objects that came before.
func (r *Reader) Updates(are bool) {
	if r.hasher != nil {
		r.hasher.Update = are
	}
}

// decodeShared sets a field of which objects may share the value, from the beginning of b, which is its tag. It returns
// the number of bytes that it has read: those of all elements of a slice or a map.
func (f *messageField) decodeShared(r *Reader, to place, b []byte) (size int, err error) {
	size, count := f.extent(b)
	if count == 0 {
		return 0, ErrWire
	}
	if !f.isFirst(r, to) {
		return 0, errRepeated
	}
	var t plan.Tag
	keep := false
	if size >= minPart && r.depth <= maxPartDepth {
		var at *byte
		var n int
		t, at, n, keep = r.hasher.Find(r.parts, &f.part, b[:size])
		if at != nil {
			to.takePart(f, at, n)
			if f.share == shareStruct {
				at, n = to.part(f)
				r.parts.Keep(t, at, n) // the object that had it may be collected soon
			}
			return size, nil
		}
	}
	quantities := r.quantities
	if err := f.decodeEach(r, to, b[:size], count); err != nil {
		return 0, err
	}
	if keep && r.quantities == quantities {
		at, n := to.part(f)
		r.parts.Keep(t, at, n)
	}
	return size, nil
}

// extent returns the size and the number of the values of the field at the beginning of b, tags included. A field that
// is not repeated has one value.
func (f *messageField) extent(b []byte) (size, count int) {
	for size < len(b) {
		number, typ, n := consumeTag(b[size:])
		if n < 0 || number != f.number || typ != protowire.BytesType {
			break
		}
		_, m := consumeBytes(b[size+n:])
		if m < 0 {
			break
		}
		size += n + m
		if count++; f.share == sharePointer || f.share == shareStruct {
			break
		}
	}
	return size, count
}

// isFirst reports whether the field has no value yet.
func (f *messageField) isFirst(r *Reader, to place) bool {
	if f.share != shareStruct {
		return to.isUnset()
	}
	bit := uint64(1) << f.number
	first := r.structs&bit == 0
	r.structs |= bit
	return first
}

// decodeEach decodes count values of the field, with their tags.
func (f *messageField) decodeEach(r *Reader, to place, b []byte, count int) error {
	if f.share == shareSlice {
		f.slice.make(r, to, count)
	}
	for len(b) > 0 {
		_, _, n := consumeTag(b)
		content, m := consumeBytes(b[n:])
		b = b[n+m:]
		var err error
		switch {
		case f.share == shareStruct:
			err = f.message.decode(r, to, content)
		case f.share == sharePointer:
			err = f.message.decode(r, to.target(f.elem), content)
		case f.share == shareSlice && f.message != nil:
			err = f.message.decode(r, f.slice.add(to), content)
		default:
			err = f.set(r, to, wireValue{typ: protowire.BytesType, bytes: content})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
