package typed

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/leatproject/leat/testserver/internal/object"
)

// appendJSON appends a value as encoding/json writes its tree, except that empty lists become null: the storage of
// kube-apiserver, which is protobuf, has no empty lists.
func (p *plan) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	switch p.form {
	case converted:
		part, err := p.convert(v)
		if err != nil {
			return dst, err
		}
		withoutEmptyLists(part)
		return object.AppendValue(dst, part)
	case text:
		return object.AppendText(dst, v.String()), nil
	case flag:
		return strconv.AppendBool(dst, v.Bool()), nil
	case integer:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case unsigned:
		n, err := integerOf(v)
		return strconv.AppendInt(dst, n, 10), err
	case float:
		return object.AppendValue(dst, v.Float())
	case record:
		return p.appendObject(dst, v)
	}
	switch {
	case p.form == invalid:
		return dst, p.err
	case v.IsNil(), p.form == list && v.Len() == 0:
		return append(dst, "null"...), nil
	}
	switch p.form {
	case pointer:
		return p.elem.appendJSON(dst, v.Elem())
	case blob:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v.Bytes()), '"'), nil
	case list:
		return p.appendList(dst, v)
	case texts:
		return appendTexts(dst, v.Interface().(map[string]string)), nil
	}
	return p.appendDictionary(dst, v)
}

func (p *plan) appendObject(dst []byte, v reflect.Value) (_ []byte, err error) {
	if p.err != nil {
		return dst, p.err
	}
	dst = append(dst, '{')
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		member, ok := f.present(v)
		if !ok {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		if dst, err = f.appendJSON(append(dst, f.key...), member); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (p *plan) appendList(dst []byte, v reflect.Value) (_ []byte, err error) {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = p.elem.appendJSON(dst, v.Index(i)); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendTexts(dst []byte, m map[string]string) []byte {
	var room [16]string // on the stack: most maps have fewer members
	names := room[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = object.AppendText(append(object.AppendText(dst, name), ':'), m[name])
	}
	return append(dst, '}')
}

func (p *plan) appendDictionary(dst []byte, v reflect.Value) (_ []byte, err error) {
	if p.err != nil {
		return dst, p.err
	}
	dst = append(dst, '{')
	for i, name := range sortedKeys(v) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(object.AppendText(dst, name.String()), ':')
		if dst, err = p.elem.appendJSON(dst, v.MapIndex(name)); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// sortedKeys returns the keys of a map of strings.
func sortedKeys(v reflect.Value) []reflect.Value {
	return slices.SortedFunc(v.Seq(), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
}
