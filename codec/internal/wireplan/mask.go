package wireplan

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/plan"
)

// Mask is a plan.Mask for the messages of one type.
type Mask struct {
	fields []*Mask // of a message, by number: nil is dropped, and whole is kept
	// values returns the Mask of an entry of a map by its key. It is nil for the Mask of a struct.
	values func(key []byte) *Mask
}

// whole keeps everything.
var whole = &Mask{}

// CompileMask returns the Mask of a struct, or of what a pointer, a list or a map of structs refers to.
func CompileMask(t reflect.Type, m *plan.Mask) *Mask {
	if m == nil {
		return whole
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	w := &Mask{}
	switch t.Kind() {
	case reflect.Struct:
		w.add(t, m)
	case reflect.Map:
		known := map[*plan.Mask]*Mask{}
		w.values = func(key []byte) *Mask {
			child, kept := m.Child(key)
			if !kept {
				return nil
			}
			return known[child]
		}
		for child := range m.Children {
			known[child] = CompileMask(t.Elem(), child)
		}
	}
	return w
}

// add adds the fields of a struct. An embedded struct that JSON shows as fields of the outer one is a message of its
// own if it has a number.
func (w *Mask) add(t reflect.Type, m *plan.Mask) {
	for i := range t.NumField() {
		f := t.Field(i)
		number, _, numbered := wireNumber(f)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		child, kept := m, true
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		isInline := f.Anonymous && name == "" && inner.Kind() == reflect.Struct
		if !isInline {
			if name == "" {
				name = f.Name
			}
			child, kept = m.Child([]byte(name))
		}
		switch {
		case inner == reflect.TypeFor[metav1.TypeMeta](): // it is in the envelope, and its numbers are used again
		case isInline && !numbered:
			w.add(inner, m)
		case kept && numbered:
			if n := int(number) + 1 - len(w.fields); n > 0 {
				w.fields = append(w.fields, make([]*Mask, n)...)
			}
			w.fields[number] = CompileMask(f.Type, child)
		}
	}
}

// Append appends what the Mask keeps of a message. From a broken field on, it appends the rest, so that the decoder
// reports the error.
func (w *Mask) Append(dst, message []byte) []byte {
	if w == whole {
		return append(dst, message...)
	}
	for b := message; len(b) > 0; {
		number, typ, tag := consumeTag(b)
		if tag < 0 {
			return append(dst, b...)
		}
		size := skipValueOf(number, typ, b[tag:])
		if size < 0 {
			return append(dst, b...)
		}
		var below *Mask
		if int(number) < len(w.fields) {
			below = w.fields[number]
		}
		var content []byte
		if below != nil && below != whole && typ == protowire.BytesType {
			content, _ = consumeBytes(b[tag:])
		}
		isEntry := below != nil && below.values != nil
		if isEntry {
			below = below.values(keyOf(content))
		}
		switch {
		case below == nil:
		case below == whole || typ != protowire.BytesType:
			dst = append(dst, b[:tag+size]...)
		case isEntry:
			dst = (&Mask{fields: []*Mask{EntryKey: whole, EntryValue: below}}).appendTo(append(dst, b[:tag]...), content)
		default:
			dst = below.appendTo(append(dst, b[:tag]...), content)
		}
		b = b[tag+size:]
	}
	return dst
}

// appendTo is Append with the length in front.
func (w *Mask) appendTo(dst, message []byte) []byte {
	at := len(dst)
	dst = w.Append(append(dst, 0), message)
	n := len(dst) - at - 1
	if n < 0x80 {
		dst[at] = byte(n)
		return dst
	}
	var size [binary.MaxVarintLen64]byte
	return slices.Replace(dst, at, at+1, binary.AppendUvarint(size[:0], uint64(n))...)
}

// keyOf returns the last key in an entry of a map.
func keyOf(entry []byte) (key []byte) {
	for number, value, rest := Field(entry); number != Ended && number != 0; number, value, rest = Field(rest) {
		if number == EntryKey {
			key = value
		}
	}
	return key
}
