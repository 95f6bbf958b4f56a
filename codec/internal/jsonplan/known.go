package jsonplan

import (
	"math"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/scan"
)

// knownTypes are frequent types whose UnmarshalJSON uses encoding/json. The usual forms are decoded here, with the same
// result; all other forms are left to UnmarshalJSON.
var knownTypes = map[reflect.Type]decode{
	reflect.TypeFor[metav1.Time]():        decodeTime,
	reflect.TypeFor[metav1.MicroTime]():   decodeMicroTime,
	reflect.TypeFor[resource.Quantity]():  decodeQuantity,
	reflect.TypeFor[intstr.IntOrString](): decodeIntOrString,
}

// decodeTime differs from UnmarshalJSON in one way: it reads an RFC 3339 time without a copy. time.Parse accepts more
// forms, so a time that is rejected here is passed to UnmarshalJSON.
func decodeTime(r *Reader, v reflect.Value) error {
	if r.Kind() == '"' {
		to := v.Addr().Interface().(*metav1.Time)
		at := r.Cursor
		if to.Time.UnmarshalText(r.Content()) == nil {
			to.Time = to.Time.Local()
			return nil
		}
		r.Cursor = at
	}
	return decodeItself(r, v)
}

// microTime is the format in which a MicroTime is always written.
const microTime = "2006-01-02T15:04:05.000000Z"

// decodeMicroTime is decodeTime for a time with exactly six digits after the second.
func decodeMicroTime(r *Reader, v reflect.Value) error {
	if r.Kind() == '"' {
		to := v.Addr().Interface().(*metav1.MicroTime)
		at := r.Cursor
		content := r.Content()
		if len(content) == len(microTime) && content[19] == '.' && content[26] == 'Z' && to.Time.UnmarshalText(content) == nil {
			to.Time = to.Time.Local()
			return nil
		}
		r.Cursor = at
	}
	return decodeItself(r, v)
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// decodeQuantity differs from UnmarshalJSON in two ways: the string is shared, and its length has a limit.
func decodeQuantity(r *Reader, v reflect.Value) error {
	r.quantities++
	t := r.Tokens[r.K]
	switch {
	case int(t.To)-t.Start() > plan.MaxQuantity:
		return r.mismatch(quantityType)
	case r.Kind() != '"' || t.From&scan.Odd != 0:
		return decodeItself(r, v) // UnmarshalJSON does not unquote
	}
	at := r.K
	q, err := resource.ParseQuantity(strings.TrimSpace(r.text()))
	if err != nil {
		r.K = at
		return r.mismatch(quantityType)
	}
	*v.Addr().Interface().(*resource.Quantity) = q
	return nil
}

// decodeIntOrString differs from UnmarshalJSON in one way: the string is shared. Like UnmarshalJSON, it does not clear
// the other field.
func decodeIntOrString(r *Reader, v reflect.Value) error {
	to := v.Addr().Interface().(*intstr.IntOrString)
	switch r.Kind() {
	case '"':
		to.Type, to.StrVal = intstr.String, r.text()
		return nil
	default:
		at := r.Cursor
		if n, ok := smallInt(r.Raw()); ok && n <= math.MaxInt32 {
			to.Type, to.IntVal = intstr.Int, int32(n)
			return nil
		}
		r.Cursor = at
		return decodeItself(r, v)
	}
}
