package api

import (
	"reflect"
	"sync"
	"time"
)

// Clone returns a deep copy of v: later changes of one do not show in the other.
//
// If a type has its own DeepCopy, as the types of Kubernetes do, Clone calls it, also for values inside other values.
// Such a method must not call Clone with its receiver. Clone copies all other values by their type: structs field by
// field, and everything that pointers, slices, maps and interfaces refer to. Nil stays nil, and empty stays empty. The
// copy shares functions, channels, map keys, and everything that unexported fields refer to; a type whose unexported
// fields refer to changing memory needs its own DeepCopy. A value must not contain itself. Clone corresponds to
// DeepCopyObject of apimachinery and needs no generated code.
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

// copier copies the values of one type. A copy begins as an assignment, which shares everything that the value refers
// to. Then detach gives the copy, which is settable, its own references; it is nil for a type without references.
//
// A type can contain itself. Therefore the code finds copiers by pointer, and reads detach only while copying.
type copier struct {
	detach func(reflect.Value)
}

// copiers holds the copier of every type that was ever cloned. A copier depends only on its type and is made once.
var copiers sync.Map // reflect.Type to *copier

// copierOf returns the copier of a type.
func copierOf(t reflect.Type) *copier {
	if c, ok := copiers.Load(t); ok {
		return c.(*copier)
	}
	compiled := compiler{}
	c := compiled.copier(t)
	// All of them are complete now. If another goroutine was faster, its copiers do the same as these.
	for t, c := range compiled {
		copiers.LoadOrStore(t, c)
	}
	return c
}

// compiler holds the copiers that are being made, including those of the types that contain the current one.
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

// structure detaches the fields that can be set. The other fields keep the assigned values. An embedded struct whose
// own name is not exported may still have fields that can be set.
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

// detachInterface copies the value in an interface by its dynamic type.
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

// ownDeepCopy returns a detach that calls the DeepCopy of a type T: T.DeepCopy() T or (*T).DeepCopy() *T. It returns
// nil if the type has neither. The method name is a constant in each call; otherwise the linker would have to keep
// every method of every type.
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

// returnsOnly reports whether a method takes only its receiver and returns one t.
func returnsOnly(method, t reflect.Type) bool {
	return method.NumIn() == 1 && method.NumOut() == 1 && method.Out(0) == t
}

var timeType = reflect.TypeFor[time.Time]()

// refersToNothing reports whether an assignment of the type is already a deep copy. It is for a time.Time: the time
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
