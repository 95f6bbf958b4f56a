package codec

import "reflect"

// DecodeJSON decodes into a new typ as the package does.
func DecodeJSON(b []byte, typ reflect.Type) (any, error) {
	return compileJSON(typ).decode(b)
}

// ScribbleOver overwrites everything that a reader holds of its stream.
func ScribbleOver[T any](r *EventReader[T]) {
	for i := range r.d.window.buf {
		r.d.window.buf[i] = 0xAA
	}
}
