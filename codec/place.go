package codec

import (
	"reflect"
	"unsafe"
)

// place is where in memory a value stands: an object, a field of it, an element of a slice. A plan was compiled from the
// types of all its places, so that nothing has to ask for them again with every value, as reflect.Value does. It is for
// values that belong to the one that decodes alone.
//
// This file is all that there is of unsafe in the package.
type place struct{ at unsafe.Pointer }

// placeOf is where a pointer leads.
func placeOf(pointer reflect.Value) place { return place{pointer.UnsafePointer()} }

// plus is the place of a field, which begins so many bytes into the struct in p.
func (p place) plus(offset uintptr) place { return place{unsafe.Add(p.at, offset)} }

// value is the value in p, which is of type t, for what only reflection can do.
func (p place) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, p.at).Elem() }

// in is the value in p. Its type is V, or another of the same kinds throughout, such as a map of named strings for one of
// strings: these are the same in memory, and maps of both have the same hash.
func in[V any](p place) *V { return (*V)(p.at) }

// target is where the pointer in p leads, and a new t if that is nowhere.
func (p place) target(t reflect.Type) place {
	to := in[unsafe.Pointer](p)
	if *to == nil {
		*to = reflect.New(t).UnsafePointer()
	}
	return place{*to}
}

// header is a slice of any type.
type header struct {
	first    unsafe.Pointer
	len, cap int
}

// extend makes the slice in p, whose elements take so many bytes each, longer by one element, and returns the place of
// that. There has to be room.
func (p place) extend(size uintptr) place {
	h := in[header](p)
	h.len++
	return place{unsafe.Add(h.first, uintptr(h.len-1)*size)}
}

// moveSlice moves the slice in from, without elements but with room for some, to p.
func (p place) moveSlice(from place) { *in[header](p), *in[header](from) = *in[header](from), header{} }
