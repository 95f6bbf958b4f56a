package informer

import (
	"reflect"
	"unsafe"

	"github.com/leatproject/leat/api"
)

// differing names the first option that two users of a shared informer do not agree on, or returns "". The logger is no
// matter for disagreement.
func differing[T api.Object](a, b Options[T]) string {
	va, vb := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for i := range va.NumField() {
		name := va.Type().Field(i).Name
		if name != "Logger" && !sameOption(va.Field(i), vb.Field(i)) {
			return name
		}
	}
	return ""
}

// sameOption compares two values of an option. Functions are compared by the address of their closure, which Go does
// not offer: two closures of one function literal have the same code, and still do different things.
func sameOption(a, b reflect.Value) bool {
	if a.Kind() != reflect.Func {
		return a.Equal(b)
	}
	return *(*unsafe.Pointer)(a.Addr().UnsafePointer()) == *(*unsafe.Pointer)(b.Addr().UnsafePointer())
}
