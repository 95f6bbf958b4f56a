package plan

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// HasQuantity reports whether a struct has a quantity, itself or in a struct that it contains. Quantities behind
// pointers, in slices and in maps do not count.
func HasQuantity(t reflect.Type) bool {
	if t == reflect.TypeFor[resource.Quantity]() {
		return true
	}
	switch t.Kind() {
	case reflect.Array:
		return HasQuantity(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if HasQuantity(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// HasReferences reports whether a struct has pointers, slices or maps, itself or in a struct that it contains. Strings
// and times do not count.
func HasReferences(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	case reflect.Array:
		return HasReferences(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if t != reflect.TypeFor[time.Time]() && HasReferences(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
