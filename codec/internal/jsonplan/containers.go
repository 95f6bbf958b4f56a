package jsonplan

import (
	"encoding/base64"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/scan"
)

func (c *compiler) pointer(t reflect.Type) decode {
	elem := c.compile(t.Elem())
	if t.Elem().Name() == "" { // methods count only behind a pointer
		switch {
		case t.Implements(unmarshalerType):
			elem = decodeItself
		case t.Implements(textUnmarshalerType):
			elem = decodeText
		}
	}
	return func(r *Reader, v reflect.Value) error {
		if r.null() {
			return setNull(r, v)
		}
		if v.IsNil() {
			if !v.CanSet() {
				return fmt.Errorf("an embedded pointer to %s cannot be set from outside of its package", t.Elem())
			}
			v.Set(reflect.New(t.Elem()))
		}
		return elem(r, v.Elem())
	}
}

func (c *compiler) slice(t reflect.Type) decode {
	elem := c.compile(t.Elem())
	isBytes := t.Elem().Kind() == reflect.Uint8
	return func(r *Reader, v reflect.Value) error {
		switch r.Kind() {
		case '[':
			return decodeSlice(r, v, elem)
		case 'n':
			return setNull(r, v)
		case '"':
			if isBytes {
				return decodeBytes(r, v)
			}
		}
		return r.mismatch(v.Type())
	}
}

// decodeSlice makes room for all elements. If a name is repeated, it decodes into the old elements without clearing
// them, as encoding/json does.
func decodeSlice(r *Reader, v reflect.Value, elem decode) error {
	end := r.Enter()
	n := r.Count(end)
	switch {
	case n == 0:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case v.Cap() == 0:
		plan.MakeRoom(v, n)
		v.SetLen(n)
	case n > v.Cap():
		grown := reflect.MakeSlice(v.Type(), n, n)
		reflect.Copy(grown, v.Slice(0, v.Cap()))
		v.Set(grown)
	default:
		v.SetLen(n)
	}
	for i := range n {
		if err := r.breaks.Pause(r.K); err != nil {
			return err
		}
		if err := elem(r, v.Index(i)); err != nil {
			return plan.Within("["+strconv.Itoa(i)+"]", err)
		}
	}
	r.K++
	return nil
}

func decodeBytes(r *Reader, v reflect.Value) error {
	content := r.Content()
	b := make([]byte, base64.StdEncoding.DecodedLen(len(content)))
	n, err := base64.StdEncoding.Decode(b, content)
	if err != nil {
		return errBase64
	}
	v.SetBytes(b[:n])
	return nil
}

// array decodes into a fixed-size Go array; extra elements are skipped, missing ones are zeroed.
func (c *compiler) array(t reflect.Type) decode {
	elem := c.compile(t.Elem())
	return func(r *Reader, v reflect.Value) error {
		switch r.Kind() {
		case '[':
		case 'n':
			return setNull(r, v)
		default:
			return r.mismatch(t)
		}
		i, end := 0, r.Enter()
		for ; r.K < end; i++ {
			if err := r.breaks.Pause(r.K); err != nil {
				return err
			}
			if i >= t.Len() {
				r.Skip()
			} else if err := elem(r, v.Index(i)); err != nil {
				return plan.Within("["+strconv.Itoa(i)+"]", err)
			}
		}
		for ; i < t.Len(); i++ {
			v.Index(i).SetZero()
		}
		r.K++
		return nil
	}
}

func (c *compiler) mapOf(t reflect.Type) decode {
	key := keyOf(t.Key())
	if key == nil {
		return decodeNothing
	}
	if t == reflect.TypeFor[map[string]string]() {
		return decodeStringMap
	}
	at := c.maps
	c.maps++
	elem := c.compile(t.Elem())
	return func(r *Reader, v reflect.Value) error {
		switch r.Kind() {
		case '{':
		case 'n':
			return setNull(r, v)
		default:
			return r.mismatch(t)
		}
		end := r.Enter()
		if v.IsNil() {
			v.Set(reflect.MakeMapWithSize(t, r.Count(end)/2))
		}
		e := r.scratch.Take(at, t)
		for r.K < end {
			if err := r.breaks.Pause(r.K); err != nil {
				return err
			}
			quantities := r.quantities
			err := key(r, e.Key)
			if err == nil {
				err = elem(r, e.Value)
			}
			if t.Elem() == quantityType {
				r.quantities = quantities // a program cannot refer to a value in a map
			}
			if err != nil {
				return plan.Within(plan.AnyKey, err)
			}
			e.MoveTo(v)
		}
		r.scratch.Put(at, e)
		r.K++
		return nil
	}
}

// keyOf returns a decoder that converts the name of a member to a map key of type t, or nil if the type cannot be a
// key.
func keyOf(t reflect.Type) decode {
	byText := reflect.PointerTo(t).Implements(textUnmarshalerType)
	switch {
	case byText && reflect.PointerTo(t).Implements(unmarshalerType):
		return decodeItself
	case byText:
		return decodeText
	}
	switch t.Kind() {
	case reflect.String:
		return decodeString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return unquoted(decodeInt)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return unquoted(decodeUint)
	default:
		return nil
	}
}

// decodeStringMap is mapOf for labels and annotations.
func decodeStringMap(r *Reader, v reflect.Value) error {
	switch r.Kind() {
	case '{':
	case 'n':
		return setNull(r, v)
	default:
		return r.mismatch(v.Type())
	}
	end := r.Enter()
	to := v.Addr().Interface().(*map[string]string)
	if *to == nil {
		*to = make(map[string]string, r.Count(end)/2)
	}
	for r.K < end {
		if err := r.breaks.Pause(r.K); err != nil {
			return err
		}
		name := r.text()
		switch r.Kind() {
		case '"':
			(*to)[name] = r.text()
		case 'n':
			(*to)[name] = ""
			r.K++
		default:
			return plan.Within(plan.AnyKey, r.mismatch(v.Type().Elem()))
		}
	}
	r.K++
	return nil
}

// unquoted applies d to the content of a string, which may be any bytes.
func unquoted(d decode) decode {
	return func(r *Reader, v reflect.Value) error {
		at := r.K
		content := r.Content()
		if len(content) == 0 || !isNumeric(content[0]) {
			r.K = at
			return r.mismatch(v.Type())
		}
		return d(literal(content, r.strings.Interner), v)
	}
}

// literal returns a reader of the only token in b.
func literal(b []byte, strings *plan.Interner) *Reader {
	from := uint32(0)
	if b[0] == '"' {
		from = scan.Odd
	}
	return &Reader{Cursor: scan.Cursor{B: b, Tokens: []scan.Token{{From: from, To: uint32(len(b))}}}, strings: plan.NewTexts(strings)}
}

// quoted is d for a field with the option string: a boolean, a number or a string in quotes.
func quoted(d decode, t reflect.Type) decode {
	return func(r *Reader, v reflect.Value) error {
		switch r.Kind() {
		case 'n':
			return d(r, v)
		case '"':
		default:
			return fmt.Errorf("what fits %s should stand in quotes", plan.TypeName(t))
		}
		at := r.K
		content := r.Content()
		if !isLiteral(content) {
			r.K = at
			return r.mismatch(t)
		}
		return d(literal(content, r.strings.Interner), v)
	}
}

// isLiteral reports whether b is a literal or a string of JSON, or begins like a number. The decoder of the number
// checks the rest.
func isLiteral(b []byte) bool {
	switch {
	case len(b) == 0:
		return false
	case b[0] == '"':
		return stdjson.Valid(b)
	case isNumeric(b[0]):
		return true
	default:
		return string(b) == "null" || string(b) == "true" || string(b) == "false"
	}
}
