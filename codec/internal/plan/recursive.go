package plan

import "reflect"

// IsRecursive reports whether a value of t may contain another t, as the schema of a CustomResourceDefinition does.
// Generated Unmarshal methods recurse as deep as the message nests, and a program cannot recover from a stack overflow.
func IsRecursive(t reflect.Type) bool { return isRecursive(t, map[reflect.Type]bool{}) }

// isRecursive is IsRecursive. entered contains the visited structs, with false for those that are finished.
func isRecursive(t reflect.Type, entered map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return isRecursive(t.Elem(), entered)
	case reflect.Struct:
	default:
		return false
	}
	if within, known := entered[t]; known {
		return within
	}
	entered[t] = true
	for i := range t.NumField() {
		if isRecursive(t.Field(i).Type, entered) {
			return true
		}
	}
	entered[t] = false
	return false
}
