package wireplan

import (
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/codec/internal/plan"
)

// isRecursive reports whether a value of t may contain another t, as the schema of a CustomResourceDefinition does.
// Generated Unmarshal methods recurse as deep as the message nests, and a program cannot recover from a stack overflow.
// entered contains the visited structs, with false for those that are finished.
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

// nestsTooDeep reports whether the message in b may nest deeper than plan.MaxDepth. It treats a string that looks like
// a message as one; no real string looks like ten thousand nested messages.
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
			if next.depth >= plan.MaxDepth {
				return true
			}
			content, _ := protowire.ConsumeBytes(value)
			pending = append(pending, nested{b: content, depth: next.depth + 1})
		}
	}
	return false
}

// nested is the unread part of a message.
type nested struct {
	b     []byte
	depth int
}
