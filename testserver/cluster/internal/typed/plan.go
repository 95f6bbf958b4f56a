package typed

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// plan says what the values of a type are in JSON. Trees, encodings and shapes come from it.
type plan struct {
	form    form
	convert func(v reflect.Value) (any, error) // of a type with its own conversion to a part of a tree
	elem    *plan                              // of a list, a map or a pointer
	fields  []fieldPlan                        // of a struct, with those of inlined structs, sorted by name
	names   map[string]int                     // of the fields
	err     error                              // why the type has no plan; returned when there is a value
}

// form is a kind of JSON values, or of Go values that become them.
type form uint8

const (
	invalid form = iota
	converted
	text
	flag
	integer
	unsigned
	float
	blob // bytes, which become a text
	list
	dictionary
	texts // a map of strings
	pointer
	record
)

// fieldPlan is a member of an object.
type fieldPlan struct {
	name  string
	key   string // the name in JSON, with a colon
	index []int
	omit  func(v reflect.Value) bool // nil if the member is never omitted
	*plan
}

// of returns the field of a struct.
func (f *fieldPlan) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

// present reports whether the member of a struct is written, and returns its value.
func (f *fieldPlan) present(v reflect.Value) (reflect.Value, bool) {
	v = f.of(v)
	return v, f.omit == nil || !f.omit(v)
}

// plans has the finished plans by reflect.Type.
var plans sync.Map

var planning sync.Mutex // held while plans are made

// planOf returns the plan of a type.
func planOf(t reflect.Type) *plan {
	if known, ok := plans.Load(t); ok {
		return known.(*plan)
	}
	planning.Lock()
	defer planning.Unlock()
	made := planner{}
	p := made.plan(t)
	for t, p := range made { // other goroutines must not see unfinished plans
		plans.LoadOrStore(t, p)
	}
	return p
}

// planner has the plans that are being made, because a type may contain itself.
type planner map[reflect.Type]*plan

func (m planner) plan(t reflect.Type) *plan {
	if known, ok := plans.Load(t); ok {
		return known.(*plan)
	}
	if p := m[t]; p != nil {
		return p
	}
	p := &plan{}
	m[t] = p
	if entry := value.TypeReflectEntryOf(t); entry.CanConvertToUnstructured() {
		p.form, p.convert = converted, entry.ToUnstructured
		switch t {
		case reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[*intstr.IntOrString]():
			p.convert = intOrString
		}
		return p
	}
	switch t.Kind() {
	case reflect.String:
		p.form = text
	case reflect.Bool:
		p.form = flag
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.form = integer
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.form = unsigned
	case reflect.Float32, reflect.Float64:
		p.form = float
	case reflect.Map:
		m.dictionary(p, t)
	case reflect.Slice:
		p.form, p.elem = list, m.plan(t.Elem())
		if t.Elem().Kind() == reflect.Uint8 {
			p.form = blob
		}
	case reflect.Pointer:
		p.form, p.elem = pointer, m.plan(t.Elem())
	case reflect.Struct:
		p.form = record
		p.err = m.fields(p, t, nil)
		slices.SortStableFunc(p.fields, func(a, b fieldPlan) int { return strings.Compare(a.name, b.name) })
		p.names = make(map[string]int, len(p.fields))
		for i := range p.fields {
			p.names[p.fields[i].name] = i
		}
	default:
		p.err = fmt.Errorf("typed: a tree has no values of type %s", t)
	}
	return p
}

// intOrString converts an IntOrString or a pointer to one. Without it, the value is encoded as JSON and decoded with
// buffers of 4 KiB.
func intOrString(v reflect.Value) (any, error) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil
		}
		v = v.Elem()
	}
	n := v.Interface().(intstr.IntOrString)
	switch n.Type {
	case intstr.Int:
		return int64(n.IntVal), nil
	case intstr.String:
		return n.StrVal, nil
	}
	return nil, fmt.Errorf("typed: an IntOrString has the type %d", n.Type)
}

func (m planner) dictionary(p *plan, t reflect.Type) {
	p.form, p.elem = dictionary, m.plan(t.Elem())
	switch {
	case t == reflect.TypeFor[map[string]string]():
		p.form = texts
	case t.Key().Kind() != reflect.String:
		p.err = fmt.Errorf("typed: a tree has no maps with keys of type %s", t.Key())
	}
}

// fields adds the fields of a struct that is at index in the struct of the plan.
func (m planner) fields(p *plan, t reflect.Type, index []int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, tags, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		options := strings.Split(tags, ",")
		at := append(slices.Clone(index), i)
		if name == "" && f.Anonymous || slices.Contains(options, "inline") {
			if f.Type.Kind() != reflect.Struct {
				return fmt.Errorf("typed: the inlined field %s of %s is no struct", f.Name, t)
			}
			if err := m.fields(p, f.Type, at); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		p.fields = append(p.fields, fieldPlan{name, `"` + name + `":`, at, omitOf(f.Type, options), m.plan(f.Type)})
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
