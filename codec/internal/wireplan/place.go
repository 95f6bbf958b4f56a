//go:build !purego

package wireplan

import (
	"reflect"
	"unsafe"
)

// place is the address of a value: an object, a field of it, or an element of a slice. The plan knows the types of all
// places from its compilation. So it need not look them up for each value, as reflect.Value does. Use it only for
// values that belong to the decoder alone.
//
// This file contains all uses of unsafe in the package. The build tag purego replaces it by place_purego.go.
type place struct{ at unsafe.Pointer }

// placeOf returns the place that a pointer refers to.
func placeOf(pointer reflect.Value) place { return place{pointer.UnsafePointer()} }

// fieldPath leads from a struct to a field of it, which may be in an embedded struct: it is the field's offset.
type fieldPath uintptr

// to returns the path to a field of the struct that the path leads to.
func (f fieldPath) to(field reflect.StructField) fieldPath { return f + fieldPath(field.Offset) }

// field returns the place of a field of the struct in p.
func (p place) field(path fieldPath) place { return place{unsafe.Add(p.at, path)} }

// value returns the value in p, of type t, for operations that need reflection.
func (p place) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, p.at).Elem() }

// in returns a pointer to the value in p, whose type must fit V.
func in[V any](p place) *V { return (*V)(p.at) }

// fits reports whether in can return a t as a V. It takes types of the same kinds throughout, such as a map of named
// strings instead of strings: both have the same memory layout, and maps of both have the same hash.
func fits[V any](t reflect.Type) bool { return hasKindsOf(t, reflect.TypeFor[V]()) }

func hasKindsOf(a, b reflect.Type) bool {
	switch {
	case a == b:
		return true
	case a.Kind() != b.Kind():
		return false
	case a.Kind() == reflect.Map:
		return hasKindsOf(a.Key(), b.Key()) && hasKindsOf(a.Elem(), b.Elem())
	case a.Kind() == reflect.Slice:
		return hasKindsOf(a.Elem(), b.Elem())
	default:
		return a.Kind() <= reflect.Complex128 || a.Kind() == reflect.String
	}
}

// put32 and put64 set the bits of an integer, signed or unsigned.
func (p place) put32(x uint32) { *in[uint32](p) = x }
func (p place) put64(x uint64) { *in[uint64](p) = x }

// target returns the place that the pointer in p refers to. If it is nil, target makes a new t.
func (p place) target(t reflect.Type) place {
	to := in[unsafe.Pointer](p)
	if *to == nil {
		*to = reflect.New(t).UnsafePointer()
	}
	return place{*to}
}

// header is the header of a slice of any type.
type header struct {
	first    unsafe.Pointer
	len, cap int
}

// hasRoom reports whether the slice in p was made with room for elements.
func (p place) hasRoom() bool { return in[header](p).cap > 0 }

// isFull reports whether the slice in p has no room for one more element.
func (p place) isFull() bool {
	h := in[header](p)
	return h.len == h.cap
}

// extend makes the slice in p longer by one element of the given size, and returns the place of that element. The slice
// must have room.
func (p place) extend(size uintptr) place {
	h := in[header](p)
	h.len++
	return place{unsafe.Add(h.first, uintptr(h.len-1)*size)}
}

// moveSlice moves the slice in from to p. The slice has no elements, but room for some.
func (p place) moveSlice(from place) { *in[header](p), *in[header](from) = *in[header](from), header{} }

// isUnset reports whether the slice, the map or the pointer in p is nil.
func (p place) isUnset() bool { return *in[unsafe.Pointer](p) == nil }

// part returns what objects may share of the field in p: the address, and the number of the elements of a slice.
func (p place) part(f *messageField) (at *byte, n int) {
	switch f.share {
	case shareStruct:
		return (*byte)(p.at), 1
	case shareSlice:
		h := in[header](p)
		return (*byte)(h.first), h.len
	default:
		return *in[*byte](p), 1
	}
}

// takePart sets the field in p to what part returned for another object. A slice has no room for more elements, so that
// an append to it makes a copy.
func (p place) takePart(f *messageField, at *byte, n int) {
	switch f.share {
	case shareStruct:
		p.value(f.typ).Set(place{unsafe.Pointer(at)}.value(f.typ))
	case shareSlice:
		*in[header](p) = header{unsafe.Pointer(at), n, n}
	default:
		*in[*byte](p) = at
	}
}
