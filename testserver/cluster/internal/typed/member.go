package typed

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leatproject/leat/testserver/internal/object"
)

// Member is the object.Member of a struct, a map or a list. Storing an object needs its tree only for the metadata; the
// other members are encoded directly.
type Member struct {
	*plan
	value  reflect.Value
	stored bool // the tree has null instead of empty lists
}

var _ object.Member = (*Member)(nil)

// AppendJSON implements object.Member.
func (m *Member) AppendJSON(dst []byte) ([]byte, error) { return m.appendJSON(dst, m.value) }

// Text implements object.Member.
func (m *Member) Text(path ...string) string { return m.text(m.value, path) }

func (p *plan) text(v reflect.Value, path []string) string {
	switch {
	case p.form == pointer:
		if v.IsNil() {
			return ""
		}
		return p.elem.text(v.Elem(), path)
	case p.form == record && len(path) > 0:
		i, known := p.names[path[0]]
		if !known {
			return ""
		}
		f := &p.fields[i]
		member, ok := f.present(v)
		if !ok {
			return ""
		}
		return f.text(member, path[1:])
	case p.form == text && len(path) == 0:
		return v.String()
	}
	part, err := p.tree(v)
	if err != nil {
		return ""
	}
	return object.TextAt(object.Tree{"": part}, append([]string{""}, path...)...)
}

// Members is Untyped with Members instead of all trees except the metadata. The value must not change as long as the
// tree is used. stored says that the tree is for the store: empty lists are null there.
func Members(value runtime.Object, kind schema.GroupVersionKind, from object.Tree, stored bool) (object.Tree, error) {
	value.GetObjectKind().SetGroupVersionKind(kind)
	v, p, err := structOf(value)
	if err == nil {
		err = p.err
	}
	if err != nil {
		return nil, err
	}
	out := make(object.Tree, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		member, ok := f.present(v)
		if !ok {
			continue
		}
		if out[f.name], err = f.member(member, stored); err != nil {
			return nil, err
		}
	}
	if from != nil { // otherwise value has the managers that the client sent
		keepManagers(object.MapAt(out, "metadata"), from) // metadata have no empty lists
	}
	return out, nil
}

// member returns a member of an object.
func (f *fieldPlan) member(v reflect.Value, stored bool) (any, error) {
	inner := f.plan
	for inner.form == pointer && !v.IsNil() {
		inner, v = inner.elem, v.Elem()
	}
	switch {
	case f.name == "metadata":
	case inner.form == record, (inner.form == dictionary || inner.form == texts || inner.form == list) && !v.IsNil():
		return &Member{inner, v, stored}, nil
	}
	return inner.tree(v)
}

// Whole returns an object with trees instead of Members. It shares everything else with tree.
func Whole(tree object.Tree) (object.Tree, error) {
	var out object.Tree
	for name, value := range tree {
		m, ok := value.(*Member)
		if !ok {
			continue
		}
		if out == nil {
			out = maps.Clone(tree)
		}
		part, err := m.tree(m.value)
		if err != nil {
			return nil, fmt.Errorf("typed: %s: %w", name, err)
		}
		if list, ok := part.([]any); ok && m.stored && len(list) == 0 {
			part = nil
		}
		if m.stored {
			withoutEmptyLists(part)
		}
		out[name] = part
	}
	if out == nil {
		return tree, nil
	}
	return out, nil
}

// WithoutEmptyLists replaces the empty lists in a tree by null. It reports whether there was one.
func WithoutEmptyLists(tree object.Tree) (changed bool) { return withoutEmptyLists(tree) }

func withoutEmptyLists(value any) (changed bool) {
	switch v := value.(type) {
	case object.Tree:
		for name, member := range v {
			if list, ok := member.([]any); ok && len(list) == 0 {
				v[name] = nil
				changed = true
				continue
			}
			changed = withoutEmptyLists(member) || changed
		}
	case []any:
		for _, item := range v {
			changed = withoutEmptyLists(item) || changed
		}
	}
	return changed
}
