package typed

import (
	"encoding/base64"
	"fmt"
	"math"
	"reflect"

	"github.com/leatproject/leat/testserver/internal/object"
)

// TreeOf returns the tree of a pointer to a struct with JSON tags: what DefaultUnstructuredConverter.ToUnstructured of
// apimachinery returns. It takes less time, because each map has room for its members, not for all fields.
func TreeOf(from any) (object.Tree, error) {
	v, p, err := structOf(from)
	if err != nil {
		return nil, err
	}
	return p.object(v)
}

// structOf returns the struct that a pointer points to, and its plan.
func structOf(from any) (reflect.Value, *plan, error) {
	v := reflect.ValueOf(from)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return v, nil, fmt.Errorf("typed: %T is no pointer to a struct", from)
	}
	return v.Elem(), planOf(v.Type().Elem()), nil
}

// tree returns the part of a tree that a value becomes.
func (p *plan) tree(v reflect.Value) (any, error) {
	switch p.form {
	case converted:
		return p.convert(v)
	case text:
		return v.String(), nil
	case flag:
		return v.Bool(), nil
	case integer:
		return v.Int(), nil
	case unsigned:
		return integerOf(v)
	case float:
		return v.Float(), nil
	case record:
		return p.object(v)
	}
	switch {
	case p.form == invalid:
		return nil, p.err
	case v.IsNil():
		return nil, nil
	}
	switch p.form {
	case pointer:
		return p.elem.tree(v.Elem())
	case blob:
		return base64.StdEncoding.EncodeToString(v.Bytes()), nil
	case list:
		return p.list(v)
	case texts:
		return textsOf(v), nil
	}
	return p.dictionary(v)
}

// integerOf returns an unsigned integer as trees have it.
func integerOf(v reflect.Value) (int64, error) {
	if v.Uint() > math.MaxInt64 {
		return 0, fmt.Errorf("typed: %d is larger than the largest integer of a tree", v.Uint())
	}
	return int64(v.Uint()), nil
}

func (p *plan) object(v reflect.Value) (object.Tree, error) {
	if p.err != nil {
		return nil, p.err
	}
	var room [48]int // on the stack: few structs have more members
	present := room[:0]
	for i := range p.fields {
		if _, ok := p.fields[i].present(v); ok {
			present = append(present, i)
		}
	}
	out := make(object.Tree, len(present))
	for _, i := range present {
		f := &p.fields[i]
		member, err := f.tree(f.of(v))
		if err != nil {
			return nil, err
		}
		out[f.name] = member
	}
	return out, nil
}

func (p *plan) list(v reflect.Value) ([]any, error) {
	out := make([]any, v.Len())
	for i := range out {
		item, err := p.elem.tree(v.Index(i))
		if err != nil {
			return nil, err
		}
		out[i] = item
	}
	return out, nil
}

func (p *plan) dictionary(v reflect.Value) (object.Tree, error) {
	if p.err != nil {
		return nil, p.err
	}
	out := make(object.Tree, v.Len())
	for each := v.MapRange(); each.Next(); {
		member, err := p.elem.tree(each.Value())
		if err != nil {
			return nil, err
		}
		out[each.Key().String()] = member
	}
	return out, nil
}

func textsOf(v reflect.Value) object.Tree {
	out := make(object.Tree, v.Len())
	for name, text := range v.Interface().(map[string]string) {
		out[name] = text
	}
	return out
}
