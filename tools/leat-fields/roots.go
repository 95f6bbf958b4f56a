package main

import (
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// anyObject stands for the type of an object that the program knows only by an interface. Whatever the program reads of
// it, it may read of every type.
var anyObject = types.NewTypeName(0, nil, "any object", nil)

// apis knows the types of API objects and of their parts.
type apis struct {
	parts typeutil.Map // the structs inside of objects: true
	roots []*types.TypeName
}

func newAPIs(all []*types.Package) *apis {
	a := &apis{}
	for _, p := range all {
		for _, name := range p.Scope().Names() {
			if t, ok := p.Scope().Lookup(name).(*types.TypeName); ok && !t.IsAlias() && object(t.Type()) != nil {
				a.roots = append(a.roots, t)
				a.add(t.Type())
			}
		}
	}
	return a
}

func (a *apis) add(t types.Type) {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		a.add(u.Elem())
	case *types.Slice:
		a.add(u.Elem())
	case *types.Array:
		a.add(u.Elem())
	case *types.Map:
		a.add(u.Elem())
	case *types.Struct:
		if a.parts.At(t) == nil && !leaf(t) {
			a.parts.Set(t, true)
			for f := range u.Fields() {
				a.add(f.Type())
			}
		}
	}
}

func (a *apis) part(t types.Type) bool { return a.parts.At(t) != nil }

// object returns the name of the type of an API object if t is one, or a pointer to one.
func object(t types.Type) *types.TypeName {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return nil
	}
	s, ok := n.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	metas := 0
	for f := range s.Fields() {
		if f.Embedded() && (isNamed(f.Type(), metaPath, "TypeMeta") || isNamed(f.Type(), metaPath, "ObjectMeta")) {
			metas++
		}
	}
	if metas != 2 {
		return nil
	}
	return n.Obj()
}

func isNamed(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path
}

// anyOf reports whether t is an interface that every API object has, such as client.Object and runtime.Object.
func anyOf(t types.Type) bool {
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	has := func(name string) bool {
		m, _, _ := types.LookupFieldOrMethod(i, false, nil, name)
		return m != nil
	}
	return has("GetLabels") && has("GetNamespace") || has("DeepCopyObject") && has("GetObjectKind")
}

// leaf reports whether a mask can't cut a value of this type: it has no fields in JSON, or a coding of its own.
func leaf(t types.Type) bool {
	for {
		if n, ok := types.Unalias(t).(*types.Named); ok && object(n) == nil {
			if m, _, _ := types.LookupFieldOrMethod(types.NewPointer(n), false, n.Obj().Pkg(), "UnmarshalJSON"); m != nil {
				if _, isMethod := m.(*types.Func); isMethod {
					return !types.IsInterface(n)
				}
			}
		}
		switch u := t.Underlying().(type) {
		case *types.Basic:
			return u.Kind() != types.UnsafePointer
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		default:
			return false
		}
	}
}

// below returns the path of a field of the struct at path. ok is false for fields that are not in JSON.
func below(path string, s *types.Struct, i int) (_ string, ok bool) {
	f := s.Field(i)
	name, options, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("json"), ",")
	switch {
	case name == "-" || !f.Exported():
		return "", false
	case name == "" && f.Embedded() || strings.Contains(options, "inline"):
		return path, true
	case name == "":
		name = f.Name()
	}
	if path == "" {
		return name, true
	}
	return path + "." + name, true
}

// at returns the type of the field at a path of t, or nil.
func at(t types.Type, path string) types.Type {
	for path != "" {
		for strings.HasPrefix(path, "[") {
			m, ok := container(t).Underlying().(*types.Map)
			end := strings.Index(path, "]")
			if strings.HasPrefix(path, `["`) {
				end = strings.Index(path, `"]`) + 1
			}
			if !ok || end <= 0 {
				return nil
			}
			t, path = m.Elem(), strings.TrimPrefix(path[end+1:], ".")
		}
		if path == "" {
			return t
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if t = child(container(t), path[:end]); t == nil {
			return nil
		}
		path = strings.TrimPrefix(path[end:], ".")
	}
	return t
}

// container removes the pointers and lists around a type.
func container(t types.Type) types.Type {
	for {
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		default:
			return t
		}
	}
}

func child(t types.Type, name string) types.Type {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || leaf(t) {
		return nil
	}
	for i := range s.NumFields() {
		switch path, ok := below("", s, i); {
		case ok && path == name:
			return s.Field(i).Type()
		case ok && path == "":
			if found := child(container(s.Field(i).Type()), name); found != nil {
				return found
			}
		}
	}
	return nil
}
