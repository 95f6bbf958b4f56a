//go:build purego

package wireplan

import "reflect"

// place is place.go's place without unsafe. It is several times slower, and a type such as a map of named strings takes
// a longer way.
type place struct{ v reflect.Value }

func placeOf(pointer reflect.Value) place { return place{pointer.Elem()} }

type fieldPath []int

func (f fieldPath) to(field reflect.StructField) fieldPath {
	return append(f[:len(f):len(f)], field.Index...)
}

func (p place) field(path fieldPath) place { return place{p.v.FieldByIndex(path)} }

func (p place) value(reflect.Type) reflect.Value { return p.v }

func in[V any](p place) *V {
	if v, ok := p.v.Addr().Interface().(*V); ok {
		return v
	}
	return p.v.Addr().Convert(reflect.TypeFor[*V]()).Interface().(*V)
}

// fits takes types with the same underlying type.
func fits[V any](t reflect.Type) bool {
	return reflect.PointerTo(t).ConvertibleTo(reflect.TypeFor[*V]())
}

func (p place) put32(x uint32) {
	if p.v.CanInt() {
		p.v.SetInt(int64(int32(x)))
	} else {
		p.v.SetUint(uint64(x))
	}
}

func (p place) put64(x uint64) {
	if p.v.CanInt() {
		p.v.SetInt(int64(x))
	} else {
		p.v.SetUint(x)
	}
}

func (p place) target(t reflect.Type) place {
	if p.v.IsNil() {
		p.v.Set(reflect.New(t))
	}
	return place{p.v.Elem()}
}

func (p place) hasRoom() bool { return p.v.Cap() > 0 }
func (p place) isFull() bool  { return p.v.Len() == p.v.Cap() }

func (p place) extend(uintptr) place {
	n := p.v.Len()
	p.v.SetLen(n + 1)
	return place{p.v.Index(n)}
}

func (p place) moveSlice(from place) {
	p.v.Set(from.v)
	from.v.SetZero()
}

// Objects share nothing; see plan.CanShare.

func (p place) isUnset() bool                      { return p.v.IsZero() }
func (place) part(*messageField) (at *byte, n int) { return nil, 0 }
func (place) takePart(*messageField, *byte, int)   {}
