package codec

import (
	"reflect"
	"slices"
)

// Protobuf reports whether T can be decoded from protobuf.
func (c *Codec[T]) Protobuf() bool { return c.d.readers[0] != nil }

// MetadataOnly reports whether T declares only apiVersion, kind and metadata.
func (c *Codec[T]) MetadataOnly() bool { return c.d.target.metadataOnly }

// Scanner returns a function that scans one value and records its tokens. It belongs to one goroutine.
func Scanner() func(b []byte) error {
	var o outline
	return func(b []byte) error {
		s := scanner{w: &window{buf: b, hi: len(b), limit: len(b)}, b: b, held: true}
		o.reset()
		_, err := s.value(0, &o)
		return err
	}
}

// DecodeInto returns a function that decodes into new values of typ like the package. It belongs to one goroutine.
func DecodeInto(typ reflect.Type) func(b []byte) (any, error) {
	plan := compileJSON(typ)
	r := jsonReader{strings: newInterner(), scratch: &scratch{}}
	var o outline
	return func(b []byte) (any, error) {
		if len(b) > 0 && !delimits(b[len(b)-1]) {
			b = append(slices.Clone(b), ' ') // a scalar never ends an answer
		}
		s := newScanner(nil, &window{buf: b, hi: len(b), limit: len(b)})
		s.held = true
		o.reset()
		if _, err := s.value(0, &o); err != nil {
			return nil, err
		}
		r.cursor = o.at(b)
		obj := reflect.New(typ)
		return obj.Interface(), plan.whole(&r, obj.Elem())
	}
}

// DecodeMessage returns a function that decodes messages into new values of typ by the numbers of their fields, without
// their methods. It returns nil if the package would not do so.
func DecodeMessage(typ reflect.Type) func(b []byte) (any, error) {
	plan := compileWire(typ)
	if plan == nil || owns[wire](reflect.PointerTo(typ)) && !isGenerated(typ) {
		return nil
	}
	strings, lately, room := newInterner(), &recent{}, &scratch{}
	return func(b []byte) (any, error) {
		obj := reflect.New(typ)
		return obj.Interface(), plan.decode(&wireReader{strings: strings, recent: lately, scratch: room}, placeOf(obj), b)
	}
}

// HeldLately decodes texts as strings of one answer, and returns those that are held for the next object of it.
func HeldLately(texts ...string) map[string]bool {
	r := wireReader{strings: newInterner(), recent: &recent{}}
	held := map[string]bool{}
	for _, text := range texts {
		r.text([]byte(text))
	}
	for _, text := range texts {
		held[text] = *r.recent.slot([]byte(text)) == text
	}
	return held
}

// Interner is the table of strings that a codec shares.
type Interner struct{ *interner }

// NewInterner returns an empty one.
func NewInterner() Interner { return Interner{newInterner()} }

// Intern returns b as a string.
func (n Interner) Intern(b []byte) string { return n.intern(b) }

// Kept returns the number of strings that are held.
func (n Interner) Kept() int {
	kept := 0
	for i := range n.kept {
		if n.kept[i].Load() != nil {
			kept++
		}
	}
	return kept
}

// Limit returns the largest size of an object in bytes.
func Limit[T any](c *Codec[T]) int { return c.d.limit }

// How many tokens, and how many bytes of a message, are decoded between two looks at a context.
const (
	BetweenBreaks      = betweenBreaks
	BytesBetweenBreaks = bytesBetweenBreaks
)
