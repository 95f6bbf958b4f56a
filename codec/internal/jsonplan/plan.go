package jsonplan

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strconv"

	"github.com/leatproject/leat/codec/internal/plan"
	"github.com/leatproject/leat/codec/internal/scan"
)

// Reader decodes the scanned JSON of one answer into the fields of structs. It belongs to one goroutine.
type Reader struct {
	scan.Cursor
	strings plan.Texts
	scratch *plan.Scratch
	breaks  scan.Breaks
	parts   *plan.Parts // nil if objects share nothing; the fields below are of no use then
	hasher  *plan.Hasher
	depth   int    // of parts in parts
	structs uint64 // the structs of the object that were set, by their places
	// quantities counts the quantities that a program can refer to. Objects do not share them: their String stores what
	// it returns.
	quantities int
}

// NewReader returns a Reader. It calls ended while it decodes a large object, and stops with the error that ended
// returns.
func NewReader(strings *plan.Interner, ended func() error) Reader {
	return Reader{strings: plan.NewTexts(strings), scratch: &plan.Scratch{}, breaks: scan.NewBreaks(ended)}
}

// text reads the current string.
func (r *Reader) text() string {
	return r.strings.Text(r.Content())
}

// null reports whether the current value is null.
func (r *Reader) null() bool { return r.Kind() == 'n' }

// decode decodes the current value into v, which is addressable, and moves behind the value. After an error, v and the
// reader are in an undefined state.
type decode func(r *Reader, v reflect.Value) error

// Plan decodes JSON into the structs of one type, with the results of sigs.k8s.io/json; decision 0002 has the reasons.
// It is compiled once from the type, and is immutable.
type Plan struct {
	elem  reflect.Type
	whole decode // nil if the struct keeps everything in a map
	// bare skips metadata.managedFields. It is nil if the plan does not decode the metadata itself.
	bare decode
}

// Generic is the method of *unstructured.Unstructured.
type Generic interface {
	// SetUnstructuredContent sets the whole content.
	SetUnstructuredContent(content map[string]any)
	// UnstructuredContent returns the whole content.
	UnstructuredContent() map[string]any
}

// IsGeneric reports whether pointers to elem are a Generic.
func IsGeneric(elem reflect.Type) bool {
	return reflect.PointerTo(elem).Implements(reflect.TypeFor[Generic]())
}

// Compile returns the plan of a struct.
func Compile(elem reflect.Type) Plan {
	if IsGeneric(elem) {
		return Plan{elem: elem}
	}
	c := newCompiler()
	p := Plan{elem: elem, whole: c.compile(elem)}
	if s, ok := c.structs[elem]; ok && !readsItself(elem) {
		c.shareStructs(s, elem)
		p.bare = c.withoutManagedFields(s)
	}
	return p
}

// ErrNotAnObject is the error of a value that is something else.
var ErrNotAnObject = errors.New("not a JSON object")

// Decode returns a pointer to a new struct with the object at c, without its managedFields if drop is set.
func (p *Plan) Decode(r *Reader, c scan.Cursor, drop bool) (any, error) {
	r.depth, r.structs = 0, 0
	if r.parts != nil && len(c.Tokens) > 0 {
		r.hasher.Begin(c.B[c.Tokens[0].Start():])
	}
	object, err := p.decode(r, c, drop)
	if r.parts != nil && errors.Is(err, errRepeated) {
		parts := r.parts
		r.parts = nil
		object, err = p.decode(r, c, drop)
		r.parts = parts
	}
	return object, err
}

func (p *Plan) decode(r *Reader, c scan.Cursor, drop bool) (any, error) {
	obj := reflect.New(p.elem)
	if len(c.Tokens) == 0 || c.Kind() != '{' {
		return obj.Interface(), ErrNotAnObject // otherwise null would decode into any type
	}
	r.Cursor = c
	r.breaks.Begin()
	switch {
	case p.whole == nil:
		return p.content(r, obj.Interface().(Generic), drop)
	case !drop:
		return obj.Interface(), p.whole(r, obj.Elem())
	case p.bare == nil:
		r.Cursor = withoutManagedFields(c)
		return obj.Interface(), p.whole(r, obj.Elem())
	default:
		return obj.Interface(), p.bare(r, obj.Elem())
	}
}

// Into decodes the value at c into v, which is addressable.
func (p *Plan) Into(r *Reader, c scan.Cursor, v reflect.Value) error {
	r.Cursor = c
	r.breaks.Begin()
	return p.whole(r, v)
}

// content decodes an object into a map.
func (p *Plan) content(r *Reader, obj Generic, drop bool) (any, error) {
	g := genericReader{r, drop}
	content, err := g.object(inObject)
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

// compiler makes the decoders of types. A recursive type refers to its own decoder.
type compiler struct {
	decoders map[reflect.Type]*decode
	structs  map[reflect.Type]*structPlan
	maps     int // number of map types, for scratch
}

func newCompiler() *compiler {
	return &compiler{decoders: map[reflect.Type]*decode{}, structs: map[reflect.Type]*structPlan{}}
}

func (c *compiler) compile(t reflect.Type) decode {
	if known, ok := c.decoders[t]; ok {
		if *known != nil {
			return *known
		}
		return func(r *Reader, v reflect.Value) error { return (*known)(r, v) }
	}
	var d decode
	c.decoders[t] = &d
	d = c.make(t)
	return d
}

func (c *compiler) make(t reflect.Type) decode {
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
func decodeItself(r *Reader, v reflect.Value) error {
	at := r.K
	if v.Addr().Interface().(stdjson.Unmarshaler).UnmarshalJSON(r.Raw()) != nil {
		r.K = at
		return r.mismatch(v.Type())
	}
	return nil
}

func decodeText(r *Reader, v reflect.Value) error {
	switch r.Kind() {
	case '"':
		at := r.K
		if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(r.Content()) != nil {
			r.K = at
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
func setNull(r *Reader, v reflect.Value) error {
	r.K++
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		v.SetZero()
	}
	return nil
}

func decodeNothing(r *Reader, v reflect.Value) error {
	if r.null() {
		return setNull(r, v)
	}
	return r.mismatch(v.Type())
}

func decodeString(r *Reader, v reflect.Value) error {
	switch r.Kind() {
	case '"':
		v.SetString(r.text())
		return nil
	case 'n':
		return setNull(r, v)
	default:
		return r.mismatch(v.Type())
	}
}

func decodeBool(r *Reader, v reflect.Value) error {
	switch r.Kind() {
	case 't', 'f':
		v.SetBool(r.Kind() == 't')
		r.K++
		return nil
	case 'n':
		return setNull(r, v)
	default:
		return r.mismatch(v.Type())
	}
}

// isNumeric reports whether a value that begins with c is a number.
func isNumeric(c byte) bool { return c == '-' || scan.IsDigit(c) }

func decodeInt(r *Reader, v reflect.Value) error {
	switch c := r.Kind(); {
	case c == 'n':
		return setNull(r, v)
	case !isNumeric(c):
		return r.mismatch(v.Type())
	}
	at := r.K
	digits := r.Raw()
	n, ok := smallInt(digits)
	if !ok {
		var err error
		n, err = strconv.ParseInt(string(digits), 10, 64)
		ok = err == nil
	}
	if !ok || v.OverflowInt(n) {
		r.K = at
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
		if !scan.IsDigit(c) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

func decodeUint(r *Reader, v reflect.Value) error {
	switch c := r.Kind(); {
	case c == 'n':
		return setNull(r, v)
	case !isNumeric(c):
		return r.mismatch(v.Type())
	}
	at := r.K
	n, err := strconv.ParseUint(string(r.Raw()), 10, 64)
	if err != nil || v.OverflowUint(n) {
		r.K = at
		return r.mismatch(v.Type())
	}
	v.SetUint(n)
	return nil
}

func decodeFloat(r *Reader, v reflect.Value) error {
	switch c := r.Kind(); {
	case c == 'n':
		return setNull(r, v)
	case !isNumeric(c):
		return r.mismatch(v.Type())
	}
	at := r.K
	f, err := strconv.ParseFloat(string(r.Raw()), v.Type().Bits())
	if err != nil {
		r.K = at
		return r.mismatch(v.Type())
	}
	v.SetFloat(f)
	return nil
}

// decodeNumber decodes a json.Number, which may be in quotes.
func decodeNumber(r *Reader, v reflect.Value) error {
	switch c := r.Kind(); {
	case c == 'n':
		return setNull(r, v)
	case isNumeric(c):
		v.SetString(string(r.Raw()))
		return nil
	case c != '"':
		return r.mismatch(v.Type())
	}
	at := r.K
	content := r.Content()
	if !scan.IsNumber(content) {
		r.K = at
		return r.mismatch(v.Type())
	}
	v.SetString(string(content))
	return nil
}

// decodeAny decodes into an interface as for unstructured objects, with integers as int64.
func decodeAny(r *Reader, v reflect.Value) error {
	g := genericReader{r, false}
	value, err := g.value()
	if err != nil {
		return err
	}
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
func (r *Reader) mismatch(t reflect.Type) error {
	return plan.Misfit(kindName(r.Kind()), t)
}

// kindName returns the kind of a value that begins with a byte. It is empty for a number.
func kindName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return ""
}

// Lenient decodes the object at c into the struct v. It skips members of the wrong type.
func Lenient(c scan.Cursor, v reflect.Value) {
	s := newCompiler().structOf(v.Type())
	r := Reader{Cursor: c}
	for end := r.Enter(); r.K < end; {
		f, next := s.find(r.Content()), r.Behind()
		if f != nil {
			to, err := f.of(v)
			before := reflect.New(f.Type).Elem()
			before.Set(to)
			if err != nil || f.decode(&r, to) != nil {
				to.Set(before)
			}
		}
		r.K = next
	}
}
