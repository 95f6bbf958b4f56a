package typed

import (
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/leatproject/leat/testserver/internal/object"
)

// TreeOf returns the tree of a pointer to a struct with JSON tags: what DefaultUnstructuredConverter.ToUnstructured of
// apimachinery returns. It takes less time, because each map has room for its members, not for all fields.
func TreeOf(from any) (object.Tree, error) {
	v := reflect.ValueOf(from)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("typed: %T is no pointer to a struct", from)
	}
	return structOf(v.Type().Elem()).tree(v.Elem())
}

// encode returns the part of a tree that a value becomes.
type encode func(v reflect.Value) (any, error)

// structPlan says how the values of a struct become trees.
type structPlan struct {
	once   sync.Once
	fields []fieldPlan // with those of inlined structs
	err    error       // why the struct has no plan
}

// fieldPlan is a member of a tree.
type fieldPlan struct {
	name   string
	index  []int
	omit   func(v reflect.Value) bool // nil if the member is never omitted
	encode encode
}

var plans sync.Map // from reflect.Type to *structPlan

func structOf(t reflect.Type) *structPlan {
	known, ok := plans.Load(t)
	if !ok {
		known, _ = plans.LoadOrStore(t, &structPlan{})
	}
	p := known.(*structPlan)
	p.once.Do(func() { p.err = p.add(t, nil) })
	return p
}

// add adds the fields of a struct that is at index in the struct of the plan.
func (p *structPlan) add(t reflect.Type, index []int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		at := append(slices.Clone(index), i)
		if name == "" && f.Anonymous || slices.Contains(strings.Split(options, ","), "inline") {
			if f.Type.Kind() != reflect.Struct {
				return fmt.Errorf("typed: the inlined field %s of %s is no struct", f.Name, t)
			}
			if err := p.add(f.Type, at); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		p.fields = append(p.fields, fieldPlan{name, at, omitOf(f.Type, strings.Split(options, ",")), encodeOf(f.Type)})
	}
	return nil
}

// omitOf returns when the options of a JSON tag leave the member out.
func omitOf(t reflect.Type, options []string) func(reflect.Value) bool {
	var empty, zero func(reflect.Value) bool
	if slices.Contains(options, "omitempty") {
		empty = emptyOf(t)
	}
	if slices.Contains(options, "omitzero") {
		zero = value.OmitZeroFunc(t)
	}
	switch {
	case empty == nil:
		return zero
	case zero == nil:
		return empty
	}
	return func(v reflect.Value) bool { return empty(v) || zero(v) }
}

func emptyOf(t reflect.Type) func(reflect.Value) bool {
	switch t.Kind() {
	case reflect.Struct:
		return nil
	case reflect.Map, reflect.Slice, reflect.Array, reflect.String:
		return func(v reflect.Value) bool { return v.Len() == 0 }
	case reflect.Float32, reflect.Float64:
		return func(v reflect.Value) bool { return v.Float() == 0 }
	case reflect.Pointer, reflect.Interface:
		return reflect.Value.IsNil
	case reflect.Bool:
		return func(v reflect.Value) bool { return !v.Bool() }
	default:
		return reflect.Value.IsZero
	}
}

func (p *structPlan) tree(v reflect.Value) (object.Tree, error) {
	if p.err != nil {
		return nil, p.err
	}
	var room [48]int // on the stack: few structs have more members
	present := room[:0]
	for i := range p.fields {
		if f := &p.fields[i]; f.omit == nil || !f.omit(f.of(v)) {
			present = append(present, i)
		}
	}
	out := make(object.Tree, len(present))
	for _, i := range present {
		f := &p.fields[i]
		member, err := f.encode(f.of(v))
		if err != nil {
			return nil, err
		}
		out[f.name] = member
	}
	return out, nil
}

// of returns the field of a struct.
func (f *fieldPlan) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

// encodeOf returns the encoding of the values of a type. Types that have their own come first.
func encodeOf(t reflect.Type) encode {
	if entry := value.TypeReflectEntryOf(t); entry.CanConvertToUnstructured() {
		return entry.ToUnstructured
	}
	switch t.Kind() {
	case reflect.String:
		return func(v reflect.Value) (any, error) { return v.String(), nil }
	case reflect.Bool:
		return func(v reflect.Value) (any, error) { return v.Bool(), nil }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value) (any, error) { return v.Int(), nil }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return unsigned
	case reflect.Float32, reflect.Float64:
		return func(v reflect.Value) (any, error) { return v.Float(), nil }
	case reflect.Map:
		return mapOf(t)
	case reflect.Slice:
		return sliceOf(t)
	case reflect.Pointer:
		return pointerTo(t.Elem())
	case reflect.Struct:
		plan := sync.OnceValue(func() *structPlan { return structOf(t) }) // a type may contain itself
		return func(v reflect.Value) (any, error) { return plan().tree(v) }
	}
	return func(reflect.Value) (any, error) { return nil, fmt.Errorf("typed: a tree has no values of type %s", t) }
}

func unsigned(v reflect.Value) (any, error) {
	if v.Uint() > math.MaxInt64 {
		return nil, fmt.Errorf("typed: %d is larger than the largest integer of a tree", v.Uint())
	}
	return int64(v.Uint()), nil
}

// later is encodeOf when a value comes, because a type may contain itself.
func later(t reflect.Type) encode {
	of := sync.OnceValue(func() encode { return encodeOf(t) })
	return func(v reflect.Value) (any, error) { return of()(v) }
}

func pointerTo(t reflect.Type) encode {
	of := later(t)
	return func(v reflect.Value) (any, error) {
		if v.IsNil() {
			return nil, nil
		}
		return of(v.Elem())
	}
}

var texts = reflect.TypeFor[map[string]string]()

func mapOf(t reflect.Type) encode {
	if t == texts {
		return textsOf
	}
	of := later(t.Elem())
	return func(v reflect.Value) (any, error) {
		if v.IsNil() {
			return nil, nil
		}
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("typed: a tree has no maps with keys of type %s", t.Key())
		}
		out := make(object.Tree, v.Len())
		for each := v.MapRange(); each.Next(); {
			member, err := of(each.Value())
			if err != nil {
				return nil, err
			}
			out[each.Key().String()] = member
		}
		return out, nil
	}
}

func textsOf(v reflect.Value) (any, error) {
	if v.IsNil() {
		return nil, nil
	}
	out := make(object.Tree, v.Len())
	for name, text := range v.Interface().(map[string]string) {
		out[name] = text
	}
	return out, nil
}

func sliceOf(t reflect.Type) encode {
	if t.Elem().Kind() == reflect.Uint8 {
		return func(v reflect.Value) (any, error) {
			if v.IsNil() {
				return nil, nil
			}
			return base64.StdEncoding.EncodeToString(v.Bytes()), nil
		}
	}
	of := later(t.Elem())
	return func(v reflect.Value) (any, error) {
		if v.IsNil() {
			return nil, nil
		}
		out := make([]any, v.Len())
		for i := range out {
			item, err := of(v.Index(i))
			if err != nil {
				return nil, err
			}
			out[i] = item
		}
		return out, nil
	}
}
