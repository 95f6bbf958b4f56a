package jsonplan

import (
	"errors"
	"reflect"

	"github.com/leatproject/leat/codec/internal/plan"
)

// shareKind says what objects share if a member has equal text in both.
type shareKind uint8

const (
	shareNothing shareKind = iota
	shareSlice             // the elements, all together
	shareMap
	sharePointer // the target
	// shareStruct is for the structs of an object, such as spec. Their content is copied from the last object that has
	// it, with what it refers to.
	shareStruct
)

const (
	// minPart is the smallest size of a shared part, in bytes. A smaller part is decoded faster than found.
	minPart = 24
	// maxPartDepth limits where parts are shared: the text of a part is hashed once on each level that it is in.
	maxPartDepth = 64
)

// errRepeated ends the decoding of an object with shared parts in which a name comes twice. The values are merged,
// which would change what other objects share. No encoder of Kubernetes writes that.
var errRepeated = errors.New("a name that comes twice")

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

// shareOf returns what objects share of a member. Values are not shared if a type in them decodes itself: it may do
// anything with them later.
func shareOf(m Member) shareKind {
	if m.quoted || m.hidden || !isPlain(m.Type, map[reflect.Type]bool{}) {
		return shareNothing
	}
	switch t := m.Type; t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 && t.Elem().Size() > 0 {
			return shareSlice
		}
	case reflect.Map:
		return shareMap
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Struct && t.Elem().Size() > 0 && knownTypes[t.Elem()] == nil {
			return sharePointer
		}
	}
	return shareNothing
}

// isPlain reports whether no type within t decodes itself, except those that this package knows.
func isPlain(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch {
	case seen[t] || knownTypes[t] != nil:
		return true
	case readsItself(t), reflect.PointerTo(t).Implements(textUnmarshalerType):
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return isPlain(t.Elem(), seen)
	case reflect.Map:
		return isPlain(t.Key(), seen) && isPlain(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type, seen) {
				return false
			}
		}
	}
	return true
}

// shareStructs lets objects share their structs. The metadata and the status differ in nearly each version, so only
// their maps and slices are shared. The maps and slices of metadata, and the structs, are kept when they come for the
// first time, because the next state of the object has them too. Other parts are kept when they come for the second
// time. A struct that refers to nothing except strings is decoded faster than found. p is the plan of the objects.
func (c *compiler) shareStructs(p *structPlan, object reflect.Type) {
	recursive := plan.IsRecursive(object) // then p also decodes other values, and their memory may be used again
	for i := range p.fields {
		f := &p.fields[i]
		if f.Name == "metadata" {
			if metadata := c.structs[f.Type]; metadata != nil {
				for j := range metadata.fields {
					metadata.fields[j].part.KeepFirst = metadata.fields[j].Name != "managedFields"
				}
			}
			continue
		}
		if !recursive && i < 64 && len(f.Index) == 1 && f.Type.Kind() == reflect.Struct && !f.quoted && !f.hidden &&
			f.Name != "status" && plan.HasReferences(f.Type) && isPlain(f.Type, map[reflect.Type]bool{}) && knownTypes[f.Type] == nil {
			f.share, f.place = shareStruct, uint64(1)<<i
		}
		f.part.KeepFirst = f.Name != "status"
	}
}

// part finds the text of the current value in the table of parts. at is nil if the value must be decoded; keep reports
// whether it should be kept then.
func (r *Reader) part(k *plan.PartKind) (t plan.Tag, at *byte, n int, keep bool) {
	end := r.Behind()
	text := r.B[r.Tokens[r.K].Start():r.Tokens[end-1].To]
	if len(text) < minPart || r.depth > maxPartDepth {
		return t, nil, 0, false
	}
	return r.hasher.Find(r.parts, k, text)
}

// decodeShared decodes the current value into v, the value of a member of which objects may share parts.
func (f *structField) decodeShared(r *Reader, v reflect.Value) error {
	if kind := r.Kind(); kind != '{' && kind != '[' {
		return f.decode(r, v)
	}
	if !f.isFirst(r, v) {
		return errRepeated
	}
	t, at, n, keep := r.part(&f.part)
	if at != nil {
		r.Skip()
		takePart(f.share, v, at, n)
		if f.share == shareStruct {
			at, n = partOf(f.share, v)
			r.parts.Keep(t, at, n) // the object that had it may be collected soon
		}
		return nil
	}
	quantities := r.quantities
	r.depth++
	if err := f.decode(r, v); err != nil {
		return err
	}
	r.depth--
	if keep && r.quantities == quantities {
		if at, n := partOf(f.share, v); n > 0 {
			r.parts.Keep(t, at, n)
		}
	}
	return nil
}

// isFirst reports whether the member has no value yet.
func (f *structField) isFirst(r *Reader, v reflect.Value) bool {
	if f.share != shareStruct {
		return v.IsNil()
	}
	first := r.structs&f.place == 0
	r.structs |= f.place
	return first
}
