package codec

import (
	"reflect"
	"slices"
)

// ScribbleOver overwrites everything that a reader holds of its stream.
func ScribbleOver[T any](r *EventReader[T]) {
	for i := range r.d.window.buf {
		r.d.window.buf[i] = 0xAA
	}
}

// ScanValue scans the value in b, and fails unless it is one.
func ScanValue(b []byte) error {
	s := scanner{w: &window{buf: b, hi: len(b), limit: len(b)}, b: b, held: true}
	_, err := s.value(0, &outline{})
	return err
}

// DecodeInto returns what decodes into new values of typ, as the package does.
func DecodeInto(typ reflect.Type) func(b []byte) (any, error) {
	plan := compileJSON(typ, newInterner())
	return func(b []byte) (any, error) {
		c, err := outlined(append(slices.Clone(b), ' '))
		if err != nil {
			return nil, err
		}
		return plan.decode(c, false)
	}
}

// DecodeMessage returns what decodes messages into new values of typ by their fields' numbers, without their methods; nil
// where the package would not.
func DecodeMessage(typ reflect.Type) func(b []byte) (any, error) {
	plan := compileWire(typ)
	if plan == nil || owns[wire](reflect.PointerTo(typ)) && !isGenerated(typ) {
		return nil
	}
	strings := newInterner()
	return func(b []byte) (any, error) {
		obj := reflect.New(typ)
		return obj.Interface(), plan.decode(&wireReader{strings: strings}, obj.Elem(), b)
	}
}
