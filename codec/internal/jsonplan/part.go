//go:build !purego

package jsonplan

import (
	"reflect"
	"unsafe"
)

// This file contains all uses of unsafe in the package. The build tag purego replaces it by part_purego.go.

// partOf returns what objects may share of v: the address, and the number of the elements of a slice, or 1.
func partOf(share shareKind, v reflect.Value) (at *byte, n int) {
	switch share {
	case shareStruct:
		return (*byte)(v.Addr().UnsafePointer()), 1
	case shareSlice:
		return (*byte)(v.UnsafePointer()), v.Len()
	default:
		return (*byte)(v.UnsafePointer()), 1
	}
}

// takePart sets v to what partOf returned for another object. A slice has no room for more elements, so that an append
// to it makes a copy.
func takePart(share shareKind, v reflect.Value, at *byte, n int) {
	switch share {
	case shareStruct:
		v.Set(reflect.NewAt(v.Type(), unsafe.Pointer(at)).Elem())
	case shareSlice:
		v.Set(reflect.SliceAt(v.Type().Elem(), unsafe.Pointer(at), n))
	default:
		*(**byte)(v.Addr().UnsafePointer()) = at
	}
}

// genericPart is partOf for a map[string]any or a []any.
func genericPart(value any) (at *byte, n int) {
	switch value := value.(type) {
	case map[string]any:
		return *(**byte)(unsafe.Pointer(&value)), 1
	case []any:
		return (*byte)(unsafe.Pointer(unsafe.SliceData(value))), len(value)
	default:
		return nil, 0
	}
}

func genericMap(at *byte) map[string]any { return *(*map[string]any)(unsafe.Pointer(&at)) }

func genericSlice(at *byte, n int) []any { return unsafe.Slice((*any)(unsafe.Pointer(at)), n) }
