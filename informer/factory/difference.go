package factory

import (
	"reflect"
	"unsafe"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// firstDifference returns the name of the first option in which two users of a shared informer differ, or "". It
// ignores Logger.
func firstDifference[T api.Object](a, b informer.Options[T]) string {
	va, vb := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for _, f := range reflect.VisibleFields(va.Type()) {
		if !f.Anonymous && f.Name != "Logger" && !sameOption(va.FieldByIndex(f.Index), vb.FieldByIndex(f.Index)) {
			return f.Name
		}
	}
	return ""
}

// sameOption compares two values of an option. Functions are equal if they are the same closure, which Go cannot
// compare without unsafe. Two closures of one function literal share code but may do different things, so the code
// pointer is not enough.
func sameOption(a, b reflect.Value) bool {
	if a.Kind() != reflect.Func {
		return a.Comparable() && b.Comparable() && a.Equal(b)
	}
	return *(*unsafe.Pointer)(a.Addr().UnsafePointer()) == *(*unsafe.Pointer)(b.Addr().UnsafePointer())
}
