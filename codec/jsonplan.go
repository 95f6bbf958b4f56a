package codec

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// jsonReader decodes what was scanned into the fields of structs.
type jsonReader struct {
	cursor
	strings *interner
	scratch *scratch
}

// text consumes the string at hand.
func (r *jsonReader) text() string { return r.strings.intern(r.content()) }

// null tells whether the value at hand is null.
func (r *jsonReader) null() bool { return r.kind() == 'n' }

// decode decodes the value at hand into v, which is addressable, and consumes it. An error leaves v and the reader as
// they happen to be.
type decode func(r *jsonReader, v reflect.Value) error

// jsonPlan decodes JSON into the structs of one type, with the results of sigs.k8s.io/json: decision 0002 has the
// reasons. It is compiled by walking through the type once, and immutable.
type jsonPlan struct {
	elem  reflect.Type
	whole decode
	// bare leaves metadata.managedFields out; nil where the plan does not see that far.
	bare decode
}

func compileJSON(elem reflect.Type) *jsonPlan {
	c := newJSONCompiler()
	p := &jsonPlan{elem: elem, whole: c.compile(elem)}
	if s, ok := c.structs[elem]; ok && !readsItself(elem) {
		p.bare = c.withoutManagedFields(s)
	}
	return p
}

// decode returns a pointer to a new struct.
func (p *jsonPlan) decode(r *jsonReader, bare bool) (any, error) {
	obj := reflect.New(p.elem)
	f := p.whole
	if bare {
		f = p.bare
	}
	return obj.Interface(), f(r, obj.Elem())
}

// fieldError says in which field, element or member of a map decoding failed.
type fieldError struct {
	path string
	err  error
}

func (e *fieldError) Error() string { return e.path + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// within adds an outer name to the path of an error.
func within(name string, err error) error {
	inner, ok := err.(*fieldError)
	switch {
	case !ok:
		return &fieldError{name, err}
	case strings.HasPrefix(inner.path, "["):
		return &fieldError{name + inner.path, inner.err}
	default:
		return &fieldError{name + "." + inner.path, inner.err}
	}
}

// mismatch is the error of a value that the type has no place for.
func (r *jsonReader) mismatch(t reflect.Type) error {
	switch r.kind() {
	case '{':
		return fmt.Errorf("an object does not fit %s", t)
	case '[':
		return fmt.Errorf("an array does not fit %s", t)
	case '"':
		return fmt.Errorf("a string does not fit %s", t)
	default:
		return fmt.Errorf("%.40s does not fit %s", r.raw(), t)
	}
}

var (
	anyType             = reflect.TypeFor[any]()
	numberType          = reflect.TypeFor[stdjson.Number]()
	unmarshalerType     = reflect.TypeFor[stdjson.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself tells whether values of t are asked to decode themselves. Methods that a type without a name has by
// embedding are not looked for, as in encoding/json.
func readsItself(t reflect.Type) bool {
	return t.Name() != "" && reflect.PointerTo(t).Implements(unmarshalerType)
}

// jsonCompiler makes the decoders of types; a type that holds itself meets its own decoder.
type jsonCompiler struct {
	decoders map[reflect.Type]*decode
	structs  map[reflect.Type]*structPlan
	maps     int // how many kinds of maps there are, for scratch
}

func newJSONCompiler() *jsonCompiler {
	return &jsonCompiler{decoders: map[reflect.Type]*decode{}, structs: map[reflect.Type]*structPlan{}}
}

func (c *jsonCompiler) compile(t reflect.Type) decode {
	if known, ok := c.decoders[t]; ok {
		if *known != nil {
			return *known
		}
		return func(r *jsonReader, v reflect.Value) error { return (*known)(r, v) }
	}
	var d decode
	c.decoders[t] = &d
	d = c.make(t)
	return d
}

func (c *jsonCompiler) make(t reflect.Type) decode {
	if known, ok := knownTypes[t]; ok {
		return known
	}
	switch {
	case readsItself(t):
		return decodeItself
	case t.Name() != "" && reflect.PointerTo(t).Implements(textUnmarshalerType):
		return decodeText
	case t == numberType:
		return decodeNumber
	case t == anyType:
		return decodeAny
	}
	switch t.Kind() {
	case reflect.String:
		return decodeString
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return decodeUint
	case reflect.Float32, reflect.Float64:
		return decodeFloat
	case reflect.Pointer:
		return c.pointer(t)
	case reflect.Slice:
		return c.slice(t)
	case reflect.Array:
		return c.array(t)
	case reflect.Map:
		return c.mapOf(t)
	case reflect.Struct:
		return c.structOf(t).decode
	default:
		return decodeNothing // a channel, a function, an interface with methods
	}
}

// decodeItself is for what implements json.Unmarshaler, which is shown null too.
func decodeItself(r *jsonReader, v reflect.Value) error {
	return v.Addr().Interface().(stdjson.Unmarshaler).UnmarshalJSON(r.raw())
}

func decodeText(r *jsonReader, v reflect.Value) error {
	switch r.kind() {
	case '"':
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(r.content())
	case 'n':
		return setNull(r, v)
	default:
		return r.mismatch(v.Type())
	}
}

// setNull consumes a null, which empties what can be nil and leaves anything else as it is.
func setNull(r *jsonReader, v reflect.Value) error {
	r.k++
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		v.SetZero()
	}
	return nil
}

func decodeNothing(r *jsonReader, v reflect.Value) error {
	if r.null() {
		return setNull(r, v)
	}
	return r.mismatch(v.Type())
}

func decodeString(r *jsonReader, v reflect.Value) error {
	switch r.kind() {
	case '"':
		v.SetString(r.text())
		return nil
	case 'n':
		return setNull(r, v)
	default:
		return r.mismatch(v.Type())
	}
}

func decodeBool(r *jsonReader, v reflect.Value) error {
	switch r.kind() {
	case 't', 'f':
		v.SetBool(r.kind() == 't')
		r.k++
		return nil
	case 'n':
		return setNull(r, v)
	default:
		return r.mismatch(v.Type())
	}
}

// isNumeric tells whether a value that begins with c is a number.
func isNumeric(c byte) bool { return c == '-' || isDigit(c) }

func decodeInt(r *jsonReader, v reflect.Value) error {
	switch c := r.kind(); {
	case c == 'n':
		return setNull(r, v)
	case !isNumeric(c):
		return r.mismatch(v.Type())
	}
	at := r.cursor
	digits := r.raw()
	n, ok := smallInt(digits)
	if !ok {
		var err error
		n, err = strconv.ParseInt(string(digits), 10, 64)
		ok = err == nil
	}
	if !ok || v.OverflowInt(n) {
		r.cursor = at
		return r.mismatch(v.Type())
	}
	v.SetInt(n)
	return nil
}

// smallInt reads the few digits that most numbers have.
func smallInt(b []byte) (n int64, ok bool) {
	if len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func decodeUint(r *jsonReader, v reflect.Value) error {
	switch c := r.kind(); {
	case c == 'n':
		return setNull(r, v)
	case !isNumeric(c):
		return r.mismatch(v.Type())
	}
	at := r.cursor
	n, err := strconv.ParseUint(string(r.raw()), 10, 64)
	if err != nil || v.OverflowUint(n) {
		r.cursor = at
		return r.mismatch(v.Type())
	}
	v.SetUint(n)
	return nil
}

func decodeFloat(r *jsonReader, v reflect.Value) error {
	switch c := r.kind(); {
	case c == 'n':
		return setNull(r, v)
	case !isNumeric(c):
		return r.mismatch(v.Type())
	}
	at := r.cursor
	f, err := strconv.ParseFloat(string(r.raw()), v.Type().Bits())
	if err != nil {
		r.cursor = at
		return r.mismatch(v.Type())
	}
	v.SetFloat(f)
	return nil
}

// decodeNumber decodes a json.Number, which may stand in quotes.
func decodeNumber(r *jsonReader, v reflect.Value) error {
	switch c := r.kind(); {
	case c == 'n':
		return setNull(r, v)
	case isNumeric(c):
		v.SetString(string(r.raw()))
		return nil
	case c != '"':
		return r.mismatch(v.Type())
	}
	content := r.content()
	if !isNumber(content) {
		return fmt.Errorf("%.40q is not a number", content)
	}
	v.SetString(string(content))
	return nil
}

// decodeAny decodes what stands in an interface as unstructured objects have it, integers as int64.
func decodeAny(r *jsonReader, v reflect.Value) error {
	g := genericReader{*r}
	value, err := g.value()
	if err != nil {
		return err
	}
	r.k = g.k
	if value == nil {
		v.SetZero()
	} else {
		v.Set(reflect.ValueOf(value))
	}
	return nil
}

var errBase64 = errors.New("not in base64")
