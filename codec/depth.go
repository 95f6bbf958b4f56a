package codec

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
)

var errTooDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// isRecursive tells whether a value of t may hold another t, as the schema of a CustomResourceDefinition does. Generated
// Unmarshal methods recurse as deep as the message nests, and a stack that overflows cannot be recovered from. entered
// has the structs that were looked into, and false for those that are done with.
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

// nestsTooDeep tells whether the message in b might nest deeper than maxDepth. A string that happens to look like a
// message counts as one, which no string does ten thousand times over.
func nestsTooDeep(b []byte) bool {
	pending := []nested{{b: b, depth: 1}}
	for len(pending) > 0 {
		next := &pending[len(pending)-1]
		num, typ, n := protowire.ConsumeTag(next.b)
		if n < 0 || num < 1 {
			pending = pending[:len(pending)-1]
			continue
		}
		size := protowire.ConsumeFieldValue(num, typ, next.b[n:])
		if size < 0 {
			pending = pending[:len(pending)-1]
			continue
		}
		value := next.b[n : n+size]
		next.b = next.b[n+size:]
		if typ == protowire.BytesType {
			if next.depth >= maxDepth {
				return true
			}
			content, _ := protowire.ConsumeBytes(value)
			pending = append(pending, nested{b: content, depth: next.depth + 1})
		}
	}
	return false
}

// nested is what is left of a message.
type nested struct {
	b     []byte
	depth int
}
