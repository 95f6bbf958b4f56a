package wireplan

import (
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/codec/internal/plan"
)

// Check returns the error that Decode would return. It makes no object: it walks over the message, and sets only values
// whose content matters, such as quantities and times, in places that it uses again. That is a fifth of the work.
func (p *Plan) Check(r *Reader, b []byte, drop bool) error {
	w := p.whole
	switch {
	case w == nil:
		return p.decodeItself(reflect.New(p.elem).Interface(), b, drop)
	case drop:
		w = p.bare
	}
	if r.checked == nil {
		r.checked = map[*messageField]checkedField{}
	}
	r.depth = 0
	r.breaks.begin(b)
	return w.check(r, b)
}

// check does what decode does, without the places.
func (p *messagePlan) check(r *Reader, b []byte) error {
	if r.depth++; r.depth > plan.MaxDepth {
		return plan.ErrTooDeep
	}
	for len(b) > 0 {
		if err := r.breaks.pause(b); err != nil {
			return err
		}
		number, typ, n := consumeTag(b)
		if n < 0 {
			return ErrWire
		}
		b = b[n:]
		f := p.field(number)
		if f == nil {
			if n = skipValueOf(number, typ, b); n < 0 {
				return ErrWire
			}
			b = b[n:]
			continue
		}
		x, n := consumeValue(typ, b)
		if n < 0 {
			return plan.Within(f.name, ErrWire)
		}
		b = b[n:]
		if err := f.check(r, x); err != nil {
			return plan.Within(f.name, err)
		}
	}
	r.depth--
	return nil
}

// checkedField is what Check remembers of a field.
type checkedField struct {
	to      reflect.Value // a place for its values
	strings bool          // see hasStrings
}

// check returns the error of set for a value.
func (f *messageField) check(r *Reader, x wireValue) error {
	if x.typ == protowire.BytesType {
		switch {
		case f.kind == fieldText:
			return nil
		case f.message != nil:
			return f.message.check(r, x.bytes)
		}
	}
	c, ok := r.checked.(map[*messageField]checkedField)[f]
	if !ok {
		c = checkedField{reflect.New(f.typ), hasStrings(f.typ)}
		r.checked.(map[*messageField]checkedField)[f] = c
	}
	if c.strings && x.typ == protowire.BytesType {
		if _, _, plain := plainEntry(x); plain || f.kind == fieldSlice {
			return nil
		}
	}
	err := f.set(r, placeOf(c.to), x)
	switch v := c.to.Elem(); {
	case v.Kind() == reflect.Map:
		v.Clear() // it keeps its memory for the next message, and so does the target of a pointer
	case v.Kind() == reflect.Pointer && !v.IsNil():
		v.Elem().SetZero()
	default:
		v.SetZero()
	}
	return err
}

// hasStrings reports whether t is a slice of strings, or a map from strings to strings. Every string is valid.
func hasStrings(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return t.Elem().Kind() == reflect.String && !ownsWire(t)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && hasStrings(reflect.SliceOf(t.Elem()))
	default:
		return false
	}
}

// AppendWithoutManagedFields appends a message without the managedFields of its metadata. The message has passed Check.
func AppendWithoutManagedFields(dst, message []byte) []byte {
	for b := message; len(b) > 0; {
		number, typ, n := consumeTag(b)
		size := n + skipValueOf(number, typ, b[n:])
		if number == ObjectMetadata && typ == protowire.BytesType {
			metadata, _ := consumeBytes(b[n:])
			dst = protowire.AppendTag(dst, number, typ)
			dst = protowire.AppendVarint(dst, uint64(len(metadata)-sizeOf(metadata, managedFields)))
			dst = appendWithout(dst, metadata, managedFields)
		} else {
			dst = append(dst, b[:size]...)
		}
		b = b[size:]
	}
	return dst
}

// sizeOf returns the number of bytes that a field takes in a message, with all its repetitions.
func sizeOf(message []byte, field protowire.Number) int {
	size := 0
	for b := message; len(b) > 0; {
		number, typ, n := consumeTag(b)
		n += skipValueOf(number, typ, b[n:])
		if number == field {
			size += n
		}
		b = b[n:]
	}
	return size
}

// appendWithout appends a message without a field.
func appendWithout(dst, message []byte, field protowire.Number) []byte {
	for b := message; len(b) > 0; {
		number, typ, n := consumeTag(b)
		n += skipValueOf(number, typ, b[n:])
		if number != field {
			dst = append(dst, b[:n]...)
		}
		b = b[n:]
	}
	return dst
}
