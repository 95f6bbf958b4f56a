package codec_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler fills values of any type at random, with content that survives a round trip through JSON.
type filler struct {
	*rand.Rand
	sparse float64 // probability that a field stays empty
}

func newFiller(seed uint64, sparse float64) filler {
	return filler{rand.New(rand.NewPCG(seed, 0)), sparse}
}

var words = []string{"", "a", "nginx", "kube-system", "a b", "quote\"d", "back\\slash", "<html>&", "é", "日本", "line\nbreak", "\u2028", "x\x00y", "😀"}

func (f filler) word() string { return words[f.IntN(len(words))] }

// fill sets v, which is settable, and all its parts.
func (f filler) fill(v reflect.Value, depth int) {
	if f.known(v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 12 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && f.Float64() >= f.sparse {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		if depth < 12 {
			v.Set(reflect.MakeSlice(v.Type(), f.IntN(3), 3))
			for i := range v.Len() {
				f.fill(v.Index(i), depth+1)
			}
		}
	case reflect.Map:
		f.fillMap(v, depth)
	case reflect.String:
		v.SetString(f.word())
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.Uint64()) >> f.IntN(64) >> (64 - v.Type().Bits()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.Uint64() >> (64 - v.Type().Bits()))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.IntN(1000)) / 8)
	}
}

func (f filler) fillMap(v reflect.Value, depth int) {
	v.Set(reflect.MakeMap(v.Type()))
	if depth >= 12 {
		return
	}
	for range f.IntN(3) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.SetMapIndex(key, value)
	}
}

// known fills the types with their own JSON form.
func (f filler) known(v reflect.Value) bool {
	at := time.Unix(f.Int64N(4e9), 0).UTC()
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		p.Time = at
	case *metav1.MicroTime:
		p.Time = at.Add(time.Duration(f.IntN(1e6)) * time.Microsecond)
	case *metav1.Duration:
		p.Duration = time.Duration(f.Int64N(1e15))
	case *intstr.IntOrString:
		*p = intstr.FromInt32(f.Int32N(1e6))
		if f.IntN(2) == 0 {
			*p = intstr.FromString("50%")
		}
	case *resource.Quantity:
		*p = resource.MustParse([]string{"0", "1", "100m", "2Gi", "1.5", "3e6", "-7"}[f.IntN(7)])
	case *runtime.RawExtension:
		p.Raw = []byte(`{"a":[1,"x",null]}`)
	case *metav1.FieldsV1:
		*p = *metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{}}}}`)
	case *json.RawMessage:
		*p = json.RawMessage(`{"b":1.5}`)
	default:
		return false
	}
	return true
}
