package codec

import (
	"math"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// knownTypes are types that read JSON themselves, that every object is full of, and that do it by way of encoding/json.
// What is usual is decoded here with the same result, and what is not is left to them.
var knownTypes = map[reflect.Type]decode{
	reflect.TypeFor[metav1.Time]():        decodeTime,
	reflect.TypeFor[metav1.MicroTime]():   decodeMicroTime,
	reflect.TypeFor[resource.Quantity]():  decodeQuantity,
	reflect.TypeFor[intstr.IntOrString](): decodeIntOrString,
}

// decodeTime differs from UnmarshalJSON in that what RFC 3339 allows is read without a copy. time.Parse is more tolerant
// than that, and so what is refused here is read again there.
func decodeTime(r *jsonReader, v reflect.Value) error {
	if r.kind() == '"' {
		to := v.Addr().Interface().(*metav1.Time)
		at := r.cursor
		if to.Time.UnmarshalText(r.content()) == nil {
			to.Time = to.Time.Local()
			return nil
		}
		r.cursor = at
	}
	return decodeItself(r, v)
}

// microTime is how a MicroTime is always written.
const microTime = "2006-01-02T15:04:05.000000Z"

// decodeMicroTime is decodeTime for a time that must have six digits behind the second.
func decodeMicroTime(r *jsonReader, v reflect.Value) error {
	if r.kind() == '"' {
		to := v.Addr().Interface().(*metav1.MicroTime)
		at := r.cursor
		content := r.content()
		if len(content) == len(microTime) && content[19] == '.' && content[26] == 'Z' && to.Time.UnmarshalText(content) == nil {
			to.Time = to.Time.Local()
			return nil
		}
		r.cursor = at
	}
	return decodeItself(r, v)
}

// decodeQuantity differs from UnmarshalJSON in that the string is shared.
func decodeQuantity(r *jsonReader, v reflect.Value) error {
	if t := r.tokens[r.k]; r.kind() != '"' || t.from&odd != 0 {
		return decodeItself(r, v) // which does not unquote
	}
	q, err := resource.ParseQuantity(strings.TrimSpace(r.text()))
	if err != nil {
		return err
	}
	*v.Addr().Interface().(*resource.Quantity) = q
	return nil
}

// decodeIntOrString differs from UnmarshalJSON in that the string is shared. What it was before shows through, there as
// here.
func decodeIntOrString(r *jsonReader, v reflect.Value) error {
	to := v.Addr().Interface().(*intstr.IntOrString)
	switch r.kind() {
	case '"':
		to.Type, to.StrVal = intstr.String, r.text()
		return nil
	default:
		at := r.cursor
		if n, ok := smallInt(r.raw()); ok && n <= math.MaxInt32 {
			to.Type, to.IntVal = intstr.Int, int32(n)
			return nil
		}
		r.cursor = at
		return decodeItself(r, v)
	}
}
