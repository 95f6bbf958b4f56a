package wireplan

import (
	"math"
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
		r.checked = &checked{places: map[*messageField]reflect.Value{}, parts: plan.NewTags()}
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
		if n := shortField(b); n > 0 {
			if f := p.field(protowire.Number(b[0] >> 3)); f == nil || f.content == fieldText {
				b = b[n:]
				continue
			}
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
		if typ != protowire.BytesType {
			n, err := f.checkNumber(r, typ, b)
			if err != nil {
				return plan.Within(f.name, err)
			}
			b = b[n:]
			continue
		}
		content, n := consumeBytes(b)
		if n < 0 {
			return plan.Within(f.name, ErrWire)
		}
		b = b[n:]
		if r.depth == 1 && r.checked.(*checked).passed(f, content) {
			continue
		}
		if err := f.checkBytes(r, content); err != nil {
			return plan.Within(f.name, err)
		}
		if r.depth == 1 {
			r.checked.(*checked).note()
		}
	}
	r.depth--
	return nil
}

// checked is what Check remembers of an answer.
type checked struct {
	places map[*messageField]reflect.Value // for the values of fields
	parts  *plan.Parts                     // for its tags; nil if this program has none
	hasher plan.Hasher
	// tags are those of structs of objects that have passed, each at a place that the other half of its tag gives. Most
	// updates change only the status, so the spec has passed before.
	tags  []uint64
	noted int    // since the last growth
	at    uint64 // of the struct that is being checked, or nowhere
	tag   uint64
}

const (
	// firstTags and maxTags are the numbers of remembered structs at first and at most: 8 KB to 512 KB.
	firstTags = 1 << 10
	maxTags   = 1 << 16
	// minChecked is the smallest size of a remembered struct, in bytes. A smaller one is checked as fast as found.
	minChecked = 256
	nowhere    = math.MaxUint64
)

// passed reports whether the same bytes of a struct of the object have passed before. If not, note remembers that they
// have passed now. Two texts have the same tag with a negligible probability, also if a user has chosen them; see
// plan.Hasher.Of.
func (c *checked) passed(f *messageField, content []byte) bool {
	c.at = nowhere
	if c.parts == nil || f.share != shareStruct || !f.part.KeepFirst || len(content) < minChecked {
		return false
	}
	t := c.hasher.Of(c.parts, &f.part, content)
	c.at, c.tag = t.Place(), t[0]
	return len(c.tags) > 0 && c.tags[c.at&uint64(len(c.tags)-1)] == c.tag
}

// note remembers the struct that passed did not know. When there have been more of them than places, the table doubles
// and is empty again, until it has maxTags places.
func (c *checked) note() {
	if c.at == nowhere {
		return
	}
	if c.noted >= len(c.tags) && len(c.tags) < maxTags {
		c.tags, c.noted = make([]uint64, max(firstTags, 2*len(c.tags))), 0
	}
	c.noted++
	c.tags[c.at&uint64(len(c.tags)-1)] = c.tag
}

// checkBytes is check for a value of the most frequent wire type. It passes the bytes in registers: a wireValue is
// passed in memory, and reading it right after writing it stalls the processor.
func (f *messageField) checkBytes(r *Reader, content []byte) error {
	switch f.content {
	case fieldText:
		return nil
	case fieldTime:
		if _, ok := timeSeconds(content); ok {
			return nil
		}
	case fieldStrings:
		if _, _, plain := plainEntry(content); plain || f.kind == fieldSlice {
			return nil
		}
	}
	if f.message != nil {
		return f.message.check(r, content)
	}
	return f.check(r, wireValue{typ: protowire.BytesType, bytes: content})
}

// checkNumber is check for a value of another wire type. n is the size of the value.
func (f *messageField) checkNumber(r *Reader, typ protowire.Type, b []byte) (n int, err error) {
	if f.content == fieldNumber && typ == f.wire {
		n = protowire.ConsumeFieldValue(f.number, typ, b)
	} else {
		var x wireValue
		if x, n = consumeValue(typ, b); n >= 0 {
			err = f.check(r, x)
		}
	}
	if n < 0 {
		err = ErrWire
	}
	return n, err
}

// check returns the error of set for a value.
func (f *messageField) check(r *Reader, x wireValue) error {
	places := r.checked.(*checked).places
	to, ok := places[f]
	if !ok {
		to = reflect.New(f.typ)
		places[f] = to
	}
	err := f.set(r, placeOf(to), x)
	switch v := to.Elem(); {
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
			from, to, size := extentOf(metadata, managedFields)
			dst = protowire.AppendVarint(dst, uint64(len(metadata)-size))
			if size == to-from {
				dst = append(append(dst, metadata[:from]...), metadata[to:]...)
			} else {
				dst = appendWithout(dst, metadata, managedFields)
			}
		} else {
			dst = append(dst, b[:size]...)
		}
		b = b[size:]
	}
	return dst
}

// extentOf returns where a field begins in a message, where it ends with all its repetitions, and how many bytes these
// take. They take all bytes in between, unless another field is among them.
func extentOf(message []byte, field protowire.Number) (from, to, size int) {
	for at := 0; at < len(message); {
		number, n := protowire.Number(message[at]>>3), shortField(message[at:])
		if n == 0 {
			var typ protowire.Type
			number, typ, n = consumeTag(message[at:])
			n += skipValueOf(number, typ, message[at+n:])
		}
		if number == field {
			if size == 0 {
				from = at
			}
			to, size = at+n, size+n
		}
		at += n
	}
	return from, to, size
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
