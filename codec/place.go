package codec

import (
	"reflect"
	"unsafe"
)

// place is the address of a value: an object, a field of it, or an element of a slice. The plan knows the types of all
// places from its compilation. So it need not look them up for each value, as reflect.Value does. Use it only for
// values that belong to the decoder alone.
//
// This file contains all uses of unsafe in the package.
type place struct{ at unsafe.Pointer }

// placeOf returns the place that a pointer refers to.
func placeOf(pointer reflect.Value) place { return place{pointer.UnsafePointer()} }

// plus returns the place of a field, offset bytes into the struct in p.
func (p place) plus(offset uintptr) place { return place{unsafe.Add(p.at, offset)} }

// value returns the value in p, of type t, for operations that need reflection.
func (p place) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, p.at).Elem() }

// in returns a pointer to the value in p. Its type is V, or a type of the same kinds throughout, such as a map of named
// strings instead of strings. Both have the same memory layout, and maps of both have the same hash.
func in[V any](p place) *V { return (*V)(p.at) }

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

// extend makes the slice in p longer by one element of the given size, and returns the place of that element. The slice
// must have room.
func (p place) extend(size uintptr) place {
	h := in[header](p)
	h.len++
	return place{unsafe.Add(h.first, uintptr(h.len-1)*size)}
}

// moveSlice moves the slice in from to p. The slice has no elements, but room for some.
func (p place) moveSlice(from place) { *in[header](p), *in[header](from) = *in[header](from), header{} }
