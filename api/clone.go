package api

import (
	"reflect"
	"sync"
	"time"
)

// Clone returns a deep copy of v: what either side does to its own afterwards, the other does not see.
//
// A type that has its own DeepCopy, as the types of Kubernetes do, is copied by that; such a method must not call Clone
// with its receiver. So are values of such types inside others. The rest is copied by what its type says: structs field
// by field, and what pointers, slices, maps and interfaces refer to. Nil stays nil and empty stays empty. Functions,
// channels and the keys of maps are shared, as is what unexported fields refer to: a type where that can change has to
// bring its own DeepCopy. Values must not contain themselves.
// It corresponds to DeepCopyObject of apimachinery, and needs no generated code.
func Clone[T any](v T) T {
	if c, ok := any(v).(interface{ DeepCopy() T }); ok {
		if isNil(reflect.ValueOf(c)) {
			return v
		}
		return c.DeepCopy()
	}
	copied := v
	if c := copierOf(reflect.TypeFor[T]()); c.detach != nil {
		c.detach(reflect.ValueOf(&copied).Elem())
	}
	return copied
}

// copier is how the values of one type are copied. A copy begins as an assignment, which shares what the value refers
// to; detach then gives the copy, which is settable, references of its own. It is nil for a type that refers to nothing.
//
// Copiers are found by pointer, and detach is read only when one runs, because a type can contain itself.
type copier struct {
	detach func(reflect.Value)
}

// copiers has the copier of every type that was ever cloned: a fact about the type, computed once.
var copiers sync.Map // reflect.Type to *copier

// copierOf returns the copier of a type.
func copierOf(t reflect.Type) *copier {
	if c, ok := copiers.Load(t); ok {
		return c.(*copier)
	}
	compiled := compiler{}
	c := compiled.copier(t)
	// Only now are they all complete. If somebody else was faster, theirs and ours do the same.
	for t, c := range compiled {
		copiers.LoadOrStore(t, c)
	}
	return c
}

// compiler holds the copiers that are being made, among them those of the types that contain the one in hand.
type compiler map[reflect.Type]*copier

func (m compiler) copier(t reflect.Type) *copier {
	if c, ok := copiers.Load(t); ok {
		return c.(*copier)
	}
	if c, ok := m[t]; ok {
		return c
	}
	c := &copier{}
	m[t] = c
	if !refersToNothing(t) {
		c.detach = m.compile(t)
	}
	return c
}

func (m compiler) compile(t reflect.Type) func(reflect.Value) {
	if detach := ownDeepCopy(t); detach != nil {
		return detach
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.pointer(t)
	case reflect.Slice:
		return m.slice(t)
	case reflect.Map:
		return m.mapping(t)
	case reflect.Struct:
		return m.structure(t)
	case reflect.Array:
		return m.array(t)
	default:
		return detachInterface
	}
}

func (m compiler) pointer(t reflect.Type) func(reflect.Value) {
	elem := m.copier(t.Elem())
	return func(v reflect.Value) {
		if v.IsNil() {
			return
		}
		copied := reflect.New(t.Elem())
		copied.Elem().Set(v.Elem())
		if elem.detach != nil {
			elem.detach(copied.Elem())
		}
		v.Set(copied)
	}
}

func (m compiler) slice(t reflect.Type) func(reflect.Value) {
	elem := m.copier(t.Elem())
	return func(v reflect.Value) {
		if v.IsNil() {
			return
		}
		copied := reflect.MakeSlice(t, v.Len(), v.Len())
		reflect.Copy(copied, v)
		if elem.detach != nil {
			for i := range copied.Len() {
				elem.detach(copied.Index(i))
			}
		}
		v.Set(copied)
	}
}

func (m compiler) mapping(t reflect.Type) func(reflect.Value) {
	elem := m.copier(t.Elem())
	return func(v reflect.Value) {
		if v.IsNil() {
			return
		}
		copied := reflect.MakeMapWithSize(t, v.Len())
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for entries := v.MapRange(); entries.Next(); {
			key.SetIterKey(entries)
			value.SetIterValue(entries)
			if elem.detach != nil {
				elem.detach(value)
			}
			copied.SetMapIndex(key, value)
		}
		v.Set(copied)
	}
}

func (m compiler) array(t reflect.Type) func(reflect.Value) {
	elem := m.copier(t.Elem())
	return func(v reflect.Value) {
		for i := range v.Len() {
			elem.detach(v.Index(i))
		}
	}
}

// structure detaches the fields that can be set. Those that cannot are what the assignment made them, except that an
// embedded struct may have fields that can although its own name is not exported.
func (m compiler) structure(t reflect.Type) func(reflect.Value) {
	type field struct {
		index  int
		copier *copier
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case refersToNothing(f.Type):
		case f.IsExported():
			fields = append(fields, field{i, m.copier(f.Type)})
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			fields = append(fields, field{i, &copier{m.structure(f.Type)}})
		}
	}
	return func(v reflect.Value) {
		for _, f := range fields {
			f.copier.detach(v.Field(f.index))
		}
	}
}

// detachInterface copies what an interface holds, by its dynamic type.
func detachInterface(v reflect.Value) {
	if v.IsNil() {
		return
	}
	held := v.Elem()
	c := copierOf(held.Type())
	if c.detach == nil {
		return
	}
	copied := reflect.New(held.Type()).Elem()
	copied.Set(held)
	c.detach(copied)
	v.Set(copied)
}

// ownDeepCopy returns a detach that calls the DeepCopy of a type T: T.DeepCopy() T or (*T).DeepCopy() *T. It is nil if
// there is neither. (The name is a constant in each call, for otherwise the linker would have to keep every method of
// every type.)
func ownDeepCopy(t reflect.Type) func(reflect.Value) {
	if t.Kind() == reflect.Interface {
		return nil
	}
	if method, ok := t.MethodByName("DeepCopy"); ok && returnsOnly(method.Type, t) {
		return func(v reflect.Value) {
			if !isNil(v) {
				v.Set(v.MethodByName("DeepCopy").Call(nil)[0])
			}
		}
	}
	pointer := reflect.PointerTo(t)
	if method, ok := pointer.MethodByName("DeepCopy"); ok && returnsOnly(method.Type, pointer) {
		return func(v reflect.Value) {
			if !isNil(v) {
				v.Set(v.Addr().MethodByName("DeepCopy").Call(nil)[0].Elem())
			}
		}
	}
	return nil
}

// returnsOnly tells whether a method, of which the first parameter is the receiver, takes nothing and returns one t.
func returnsOnly(method, t reflect.Type) bool {
	return method.NumIn() == 1 && method.NumOut() == 1 && method.Out(0) == t
}

var timeType = reflect.TypeFor[time.Time]()

// refersToNothing tells whether the assignment of a value of the type is a deep copy already. A time.Time is one: it
// refers to a Location, but no Location ever changes.
func refersToNothing(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return false
	case reflect.Array:
		return t.Len() == 0 || refersToNothing(t.Elem())
	case reflect.Struct:
		if t == timeType {
			return true
		}
		for i := range t.NumField() {
			if !refersToNothing(t.Field(i).Type) {
				return false
			}
		}
		return true
	default: // numbers and strings; functions, channels and unsafe pointers, which are shared
		return true
	}
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface, reflect.Func, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}
