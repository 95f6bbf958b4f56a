package codec

import (
	"reflect"
	"slices"
	"strings"

	"github.com/leatproject/leat/codec/internal/jsonplan"
	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/scan"
	"github.com/leatproject/leat/codec/internal/wireplan"
)

// The types of the tests decode themselves. An init is called before the tests make their codecs.
func init() { LetTypesUnmarshal() }

// Protobuf reports whether T can be decoded from protobuf.
func (c *Codec[T]) Protobuf() bool { return c.d.readers[0] != nil }

// MetadataOnly reports whether T declares only apiVersion, kind and metadata.
func (c *Codec[T]) MetadataOnly() bool { return c.d.target.metadataOnly }

// Scanner returns a function that scans one value and records its tokens. It belongs to one goroutine.
func Scanner() func(b []byte) error {
	var o scan.Outline
	return o.Scan
}

// DecodeInto returns a function that decodes into new values of typ like the package. It belongs to one goroutine.
func DecodeInto(typ reflect.Type) func(b []byte) (any, error) {
	p := jsonplan.Compile(typ)
	r := jsonplan.NewReader(plan.NewInterner(plan.MaxStrings), nil)
	var o scan.Outline
	return func(b []byte) (any, error) {
		if len(b) > 0 && !strings.ContainsRune("}]\" \n\t\r,:", rune(b[len(b)-1])) {
			b = append(slices.Clone(b), ' ') // a scalar never ends an answer
		}
		if err := o.Scan(b); err != nil {
			return nil, err
		}
		obj := reflect.New(typ)
		return obj.Interface(), p.Into(&r, o.At(b), obj.Elem())
	}
}

// DecodeMessage returns a function that decodes messages into new values of typ by the numbers of their fields, without
// their methods. It returns nil if the package would not do so.
func DecodeMessage(typ reflect.Type) func(b []byte) (any, error) {
	p := wireplan.Compile(typ)
	if p == nil || !p.ByNumbers() {
		return nil
	}
	r := wireplan.NewReader(plan.NewInterner(plan.MaxStrings), func() error { return nil })
	r.Remember()
	return func(b []byte) (any, error) { return p.Decode(&r, b, false) }
}

// SharedMessages returns a function that makes decoders like that of DecodeMessage, whose objects share parts. It
// returns nil if the package would not do so.
func SharedMessages(typ reflect.Type) func() func(b []byte) (any, error) {
	p, parts := wireplan.Compile(typ), plan.NewParts(plan.MaxParts)
	if p == nil || !p.ByNumbers() || parts == nil {
		return nil
	}
	interner := plan.NewInterner(plan.MaxStrings)
	return func() func(b []byte) (any, error) {
		r := wireplan.NewReader(interner, func() error { return nil })
		r.Remember()
		r.Share(parts)
		return func(b []byte) (any, error) { return p.Decode(&r, b, false) }
	}
}

// SharedJSON is SharedMessages for JSON. With shared, the objects share parts.
func SharedJSON(typ reflect.Type, shared bool) func() func(b []byte) (any, error) {
	p, parts, interner := jsonplan.Compile(typ), plan.NewParts(plan.MaxParts), plan.NewInterner(plan.MaxStrings)
	return func() func(b []byte) (any, error) {
		r := jsonplan.NewReader(interner, func() error { return nil })
		if shared {
			r.Share(parts)
		}
		return func(b []byte) (any, error) {
			var o scan.Outline
			if err := o.Scan(b); err != nil {
				return nil, err
			}
			return p.Decode(&r, o.At(b), false)
		}
	}
}

// Limit returns the largest size of an object in bytes.
func Limit[T any](c *Codec[T]) int { return c.d.limit }

// These are the number of tokens, and of bytes of a message, that are decoded between two looks at a context.
const (
	BetweenBreaks      = 4 << 10
	BytesBetweenBreaks = 64 << 10
)
