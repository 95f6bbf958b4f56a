package plan

import (
	"fmt"
	"reflect"
)

const (
	// MaxDepth is the largest nesting of values, as in sigs.k8s.io/json.
	MaxDepth = 10000
	// MaxQuantity limits the text of a quantity, in bytes. The time to parse one grows with the square of its digits:
	// 16 MiB take minutes. APIs accept about twenty digits.
	MaxQuantity = 1 << 10
)

// ErrTooDeep is the error of an object that nests deeper than MaxDepth.
var ErrTooDeep = fmt.Errorf("nested deeper than %d levels", MaxDepth)

// MakeRoom gives an empty slice room for exactly n elements. So an append to a slice of a cached object makes a copy.
// Unlike reflect.MakeSlice, it makes no header that must be copied.
func MakeRoom(v reflect.Value, n int) {
	v.Grow(n)
	v.SetCap(n)
}
