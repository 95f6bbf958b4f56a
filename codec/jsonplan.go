package codec

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strconv"

	"github.com/leatproject/leat/codec/internal/plan"
)

// jsonReader decodes scanned JSON into the fields of structs.
type jsonReader struct {
	cursor
	strings *plan.Interner
	scratch *plan.Scratch
	breaks  breaks
}

// text reads the current string.
func (r *jsonReader) text() string { return r.strings.Intern(r.content()) }

// null reports whether the current value is null.
func (r *jsonReader) null() bool { return r.kind() == 'n' }

// decode decodes the current value into v, which is addressable, and moves behind the value. After an error, v and the
// reader are in an undefined state.
type decode func(r *jsonReader, v reflect.Value) error

// jsonPlan decodes JSON into the structs of one type, with the results of sigs.k8s.io/json; decision 0002 has the
// reasons. It is compiled once from the type, and is immutable.
type jsonPlan struct {
	elem  reflect.Type
	whole decode // nil if the struct keeps everything in a map
	// bare skips metadata.managedFields. It is nil if the plan does not decode the metadata itself.
	bare decode
}

// generic is the method of *unstructured.Unstructured.
type generic interface {
	SetUnstructuredContent(content map[string]any)
	UnstructuredContent() map[string]any
}

func isGeneric(elem reflect.Type) bool {
	return reflect.PointerTo(elem).Implements(reflect.TypeFor[generic]())
}

func compileJSON(elem reflect.Type) jsonPlan {
	if isGeneric(elem) {
		return jsonPlan{elem: elem}
	}
	c := newJSONCompiler()
	p := jsonPlan{elem: elem, whole: c.compile(elem)}
	if s, ok := c.structs[elem]; ok && !readsItself(elem) {
		p.bare = c.withoutManagedFields(s)
	}
	return p
}

var errNotAnObject = errors.New("not a JSON object")

// decode returns a pointer to a new struct with the object at c, without its managedFields if drop is set.
func (p *jsonPlan) decode(r *jsonReader, c cursor, drop bool) (any, error) {
	obj := reflect.New(p.elem)
	if len(c.tokens) == 0 || c.kind() != '{' {
		return obj.Interface(), errNotAnObject // otherwise null would decode into any type
	}
	r.cursor = c
	r.breaks.begin()
	switch {
	case p.whole == nil:
		return p.content(r, obj.Interface().(generic), drop)
	case !drop:
		return obj.Interface(), p.whole(r, obj.Elem())
	case p.bare == nil:
		r.cursor = withoutManagedFields(c)
		return obj.Interface(), p.whole(r, obj.Elem())
	default:
		return obj.Interface(), p.bare(r, obj.Elem())
	}
}

// content decodes an object into a map.
func (p *jsonPlan) content(r *jsonReader, obj generic, drop bool) (any, error) {
	where := nowhere
	if drop {
		where = inObject
	}
	g := genericReader{*r}
	content, err := g.object(where)
	if err == nil {
		obj.SetUnstructuredContent(content)
	}
	return obj, err
}

var (
	anyType             = reflect.TypeFor[any]()
	numberType          = reflect.TypeFor[stdjson.Number]()
	unmarshalerType     = reflect.TypeFor[stdjson.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself reports whether values of t have their own UnmarshalJSON. Like encoding/json, it ignores methods that an
// unnamed type has by embedding.
func readsItself(t reflect.Type) bool {
	return t.Name() != "" && reflect.PointerTo(t).Implements(unmarshalerType)
}

// jsonCompiler makes the decoders of types. A recursive type refers to its own decoder.
type jsonCompiler struct {
	decoders map[reflect.Type]*decode
	structs  map[reflect.Type]*structPlan
	maps     int // number of map types, for scratch
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

// decodeItself calls UnmarshalJSON, also for null.
func decodeItself(r *jsonReader, v reflect.Value) error {
	at := r.k
	if v.Addr().Interface().(stdjson.Unmarshaler).UnmarshalJSON(r.raw()) != nil {
		r.k = at
		return r.mismatch(v.Type())
	}
	return nil
}

func decodeText(r *jsonReader, v reflect.Value) error {
	switch r.kind() {
	case '"':
		at := r.k
		if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(r.content()) != nil {
			r.k = at
			return r.mismatch(v.Type())
		}
		return nil
	case 'n':
		return setNull(r, v)
	default:
		return r.mismatch(v.Type())
	}
}

// setNull reads a null. It clears a value that can be nil, and does not change any other.
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

// isNumeric reports whether a value that begins with c is a number.
func isNumeric(c byte) bool { return c == '-' || isDigit(c) }

func decodeInt(r *jsonReader, v reflect.Value) error {
	switch c := r.kind(); {
	case c == 'n':
		return setNull(r, v)
	case !isNumeric(c):
		return r.mismatch(v.Type())
	}
	at := r.k
	digits := r.raw()
	n, ok := smallInt(digits)
	if !ok {
		var err error
		n, err = strconv.ParseInt(string(digits), 10, 64)
		ok = err == nil
	}
	if !ok || v.OverflowInt(n) {
		r.k = at
		return r.mismatch(v.Type())
	}
	v.SetInt(n)
	return nil
}

// smallInt parses an integer of at most 18 digits, as most are.
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
	at := r.k
	n, err := strconv.ParseUint(string(r.raw()), 10, 64)
	if err != nil || v.OverflowUint(n) {
		r.k = at
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
	at := r.k
	f, err := strconv.ParseFloat(string(r.raw()), v.Type().Bits())
	if err != nil {
		r.k = at
		return r.mismatch(v.Type())
	}
	v.SetFloat(f)
	return nil
}

// decodeNumber decodes a json.Number, which may be in quotes.
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
	at := r.k
	content := r.content()
	if !isNumber(content) {
		r.k = at
		return r.mismatch(v.Type())
	}
	v.SetString(string(content))
	return nil
}

// decodeAny decodes into an interface as for unstructured objects, with integers as int64.
func decodeAny(r *jsonReader, v reflect.Value) error {
	g := genericReader{*r}
	value, err := g.value()
	if err != nil {
		return err
	}
	r.k, r.breaks = g.k, g.breaks
	if value == nil {
		v.SetZero()
	} else {
		v.Set(reflect.ValueOf(value))
	}
	return nil
}

var errBase64 = errors.New("not in base64")

// mismatch returns the error of a value that does not fit the type. It omits the error of the type's own method,
// because that may quote the value: metav1.Time quotes it five times.
func (r *jsonReader) mismatch(t reflect.Type) error {
	return plan.Misfit(kindNames[r.kind()], t)
}

// kindNames has the kinds of values by their first byte. Other bytes begin a number.
var kindNames = map[byte]string{'{': "an object", '[': "an array", '"': "a string", 't': "a boolean", 'f': "a boolean", 'n': "null"}
