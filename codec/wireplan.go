package codec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wireReader decodes messages of protobuf into the fields of structs.
type wireReader struct {
	strings *interner
	scratch *scratch
	depth   int
}

// wireValue is what stands behind a tag on the wire.
type wireValue struct {
	typ    protowire.Type
	number uint64 // of a varint or a fixed number
	bytes  []byte // of a string, of bytes or of a message; it aliases the answer
}

// setWire puts a value into v, which is addressable.
type setWire func(r *wireReader, v reflect.Value, x wireValue) error

// wirePlan decodes messages into the structs of one type, whose fields say in their tags which number each has:
// `protobuf:"bytes,3,opt,name=namespace"`, as in k8s.io/api. What the struct has no field for is stepped over.
type wirePlan struct {
	fields []*wireField // by number, up to the largest
}

type wireField struct {
	name   string // for errors
	number protowire.Number
	first  int // with rest as for reflect.Value.FieldByIndex, through structs alone
	rest   []int
	repeat bool // a slice of messages or strings
	text   bool // a string
	set    setWire
	// message is what set decodes into, where that is a single message.
	message *wirePlan
}

// wireCompiler makes the plans of structs; a struct that holds itself meets its own plan.
type wireCompiler struct {
	plans map[reflect.Type]*wirePlan
	maps  int // how many kinds of maps there are, for scratch
}

// compileWire returns the plan of an object's type, and nil where something that it declares has no number. apiVersion
// and kind need none: they stand in the envelope.
func compileWire(elem reflect.Type) *wirePlan {
	c := wireCompiler{plans: map[reflect.Type]*wirePlan{}}
	p, err := c.structOf(elem, true)
	if metadata := p.field(objectMetadata); err != nil || metadata == nil || metadata.name != "metadata" {
		return nil // numbers that are for something else
	}
	return p
}

// errNoNumber says why a type cannot be read from protobuf.
var errNoNumber = errors.New("a type that protobuf has no place for")

func (c *wireCompiler) structOf(t reflect.Type, root bool) (*wirePlan, error) {
	if p, ok := c.plans[t]; ok {
		return p, nil
	}
	p := &wirePlan{}
	c.plans[t] = p
	return p, c.fields(p, t, nil, root)
}

// fields adds the fields of t, to which index leads, to a plan.
func (c *wireCompiler) fields(p *wirePlan, t reflect.Type, index []int, root bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		number, repeat, ok := wireNumber(f)
		switch {
		case ok && !f.IsExported():
			return errNoNumber
		case ok:
			if err := c.field(p, f, number, repeat, at); err != nil {
				return err
			}
		case f.Anonymous && f.Type == reflect.TypeFor[metav1.TypeMeta]():
		case f.Anonymous && f.Type.Kind() == reflect.Struct && !owns[wire](reflect.PointerTo(f.Type)) && f.Tag.Get("json") != "-":
			if err := c.fields(p, f.Type, at, root); err != nil {
				return err
			}
		case isDeclared(f, root):
			return errNoNumber
		}
	}
	return nil
}

// isDeclared tells whether a field without a number would be decoded from JSON.
func isDeclared(f reflect.StructField, root bool) bool {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" || !f.IsExported() && !f.Anonymous {
		return false
	}
	return !root || name != "apiVersion" && name != "kind"
}

// wireNumber reads the tag of a field.
func wireNumber(f reflect.StructField) (number protowire.Number, repeat, ok bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 3 {
		return 0, false, false
	}
	n, err := strconv.Atoi(parts[1])
	return protowire.Number(n), parts[2] == "rep", err == nil && protowire.Number(n).IsValid()
}

// maxWireNumber bounds the table of a plan. Kubernetes numbers its fields from 1.
const maxWireNumber = 1 << 10

func (c *wireCompiler) field(p *wirePlan, f reflect.StructField, number protowire.Number, repeat bool, index []int) error {
	if number > maxWireNumber || p.field(number) != nil {
		return errNoNumber
	}
	if int(number) >= len(p.fields) {
		p.fields = append(p.fields, make([]*wireField, int(number)+1-len(p.fields))...)
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		name = f.Name
	}
	encoding, _, _ := strings.Cut(f.Tag.Get("protobuf"), ",")
	field := &wireField{name: name, number: number, first: index[0], rest: index[1:], text: f.Type.Kind() == reflect.String && !ownsWire(f.Type)}
	p.fields[number] = field // before its type, which may hold this struct
	set, err := c.setter(f.Type, encoding)
	if err != nil {
		return err
	}
	field.set, field.message = set, c.plans[f.Type]
	field.repeat = repeat && f.Type.Kind() == reflect.Slice && !owns[wire](reflect.PointerTo(f.Type))
	if field.message != nil && ownsWire(f.Type) {
		field.message = nil
	}
	return nil
}

// field returns the field of a number, or nil.
func (p *wirePlan) field(number protowire.Number) *wireField {
	if int(number) < len(p.fields) {
		return p.fields[number]
	}
	return nil
}

// ownsWire tells whether values of t are asked to decode themselves: those with an Unmarshal of their own that may do
// anything but what the tags of their fields say.
func ownsWire(t reflect.Type) bool {
	return owns[wire](reflect.PointerTo(t)) && !isGenerated(t)
}

// isGenerated tells whether a struct looks like one that go-to-protobuf made an Unmarshal for: nothing in it is hidden
// from other packages, and each field has a number, or a tag that keeps it out of JSON as well.
func isGenerated(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		_, _, numbered := wireNumber(f)
		isTypeMeta := f.Anonymous && f.Type == reflect.TypeFor[metav1.TypeMeta]()
		if !f.IsExported() || !numbered && !isTypeMeta && (f.Tag.Get("json") != "-" || f.Tag.Get("protobuf") != "") {
			return false
		}
	}
	return t.NumField() > 0
}

// decode reads a message into the struct v.
func (p *wirePlan) decode(r *wireReader, v reflect.Value, b []byte) error {
	if r.depth++; r.depth > maxDepth {
		return errTooDeep
	}
	for len(b) > 0 {
		number, typ, n := consumeTag(b)
		if n < 0 {
			return errWire
		}
		f := p.field(number)
		if f == nil {
			m := protowire.ConsumeFieldValue(number, typ, b[n:])
			if m < 0 {
				return errWire
			}
			b = b[n+m:]
			continue
		}
		to := f.of(v)
		if f.text && typ == protowire.BytesType {
			if content, m := consumeBytes(b[n:]); m > 0 {
				to.SetString(r.strings.intern(content))
				b = b[n+m:]
				continue
			}
		}
		x, m := consumeValue(typ, b[n:])
		if m < 0 {
			return within(f.name, errWire)
		}
		b = b[n+m:]
		if f.repeat && to.Cap() == 0 {
			makeRoom(to, 1+f.count(b))
		}
		if err := f.set(r, to, x); err != nil {
			return within(f.name, err)
		}
	}
	r.depth--
	return nil
}

// makeRoom gives a slice without any room for n elements, and for no more: who appends to what a cache holds gets a copy.
// Unlike reflect.MakeSlice it makes no header that has to be copied from.
func makeRoom(v reflect.Value, n int) {
	v.Grow(n)
	v.SetCap(n)
}

// of returns the field in the struct v.
func (f *wireField) of(v reflect.Value) reflect.Value {
	v = v.Field(f.first)
	for _, i := range f.rest {
		v = v.Field(i)
	}
	return v
}

// count is how often the field stands in b, the rest of a message, without a gap: encoders write the elements of a field
// one behind the other.
func (f *wireField) count(b []byte) int {
	for n := 0; ; n++ {
		number, typ, tag := consumeTag(b)
		if tag < 0 || number != f.number || typ != protowire.BytesType {
			return n
		}
		_, size := consumeValue(typ, b[tag:])
		if size < 0 {
			return n
		}
		b = b[tag+size:]
	}
}

// consumeTag is protowire.ConsumeTag, faster for the numbers that most fields have.
func consumeTag(b []byte) (protowire.Number, protowire.Type, int) {
	if len(b) > 0 && 8 <= b[0] && b[0] < 0x80 {
		return protowire.Number(b[0] >> 3), protowire.Type(b[0] & 7), 1
	}
	return protowire.ConsumeTag(b)
}

// consumeValue reads the value behind a tag. Groups are no value of a field.
func consumeValue(typ protowire.Type, b []byte) (x wireValue, n int) {
	x.typ = typ
	switch typ {
	case protowire.BytesType:
		x.bytes, n = consumeBytes(b)
	case protowire.VarintType:
		x.number, n = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		x.number, n = protowire.ConsumeFixed64(b)
	case protowire.Fixed32Type:
		var word uint32
		word, n = protowire.ConsumeFixed32(b)
		x.number = uint64(word)
	default:
		n = -1
	}
	return x, n
}

// consumeBytes is protowire.ConsumeBytes, faster for what is short.
func consumeBytes(b []byte) ([]byte, int) {
	if len(b) > 0 && b[0] < 0x80 && len(b) > int(b[0]) {
		n := 1 + int(b[0])
		return b[1:n], n
	}
	return protowire.ConsumeBytes(b)
}

// want checks the wire type of a value.
func (x wireValue) want(typ protowire.Type) error {
	if x.typ != typ {
		return fmt.Errorf("the wire type %d where %d should be: %w", x.typ, typ, errWire)
	}
	return nil
}

// without is the plan but for one field of one message, or the plan itself where that message is not decoded by one.
func (p *wirePlan) without(message, field protowire.Number) *wirePlan {
	outer := p.field(message)
	if outer == nil || outer.message == nil {
		return p
	}
	inner := &wirePlan{fields: slices.Clone(outer.message.fields)}
	if inner.field(field) != nil {
		inner.fields[field] = nil
	}
	pruned := *outer
	pruned.message = inner
	pruned.set = inner.setMessage
	q := &wirePlan{fields: slices.Clone(p.fields)}
	q.fields[message] = &pruned
	return q
}

func (p *wirePlan) setMessage(r *wireReader, v reflect.Value, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	return p.decode(r, v, x.bytes)
}
