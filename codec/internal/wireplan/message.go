package wireplan

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/plan"
)

// setWire sets a place of its type to a value.
type setWire func(r *Reader, to place, x wireValue) error

// messagePlan decodes messages into the structs of one type. The tag of each field contains its number, as in
// k8s.io/api: `protobuf:"bytes,3,opt,name=namespace"`. Fields that the struct does not declare are skipped.
type messagePlan struct {
	fields []*messageField // by number, up to the largest
	// quantity is set if the struct has a quantity. One that the message does not have is zero, and its String stores
	// what it returns too.
	quantity bool
}

type messageField struct {
	name   string // for errors
	number protowire.Number
	path   fieldPath // in the struct of the plan
	typ    reflect.Type
	kind   fieldKind
	share  shareKind
	part   plan.PartKind // of values that objects share
	unique bool          // the text differs in each object, so the reader does not look for an equal one
	// content is the kind of the field, or of the target of its pointer, as far as check needs it. wire is the wire
	// type of a number.
	content fieldKind
	wire    protowire.Type
	set     setWire
	// message is the plan of the field's message or messages.
	message *messagePlan
	elem    reflect.Type // the type that a pointer refers to
	slice   sliceType
}

// fieldKind selects a shorter way to a field's value than set, if there is one.
type fieldKind uint8

const (
	fieldOther  fieldKind = iota
	fieldNumber           // or a boolean
	fieldText
	fieldTime // a metav1.Time
	fieldMessage
	fieldPointer // to a message
	fieldSlice   // of anything except bytes
	fieldStrings // see hasStrings
)

// compiler makes the plans of structs. A recursive struct refers to its own plan.
type compiler struct {
	plans map[reflect.Type]*messagePlan
	maps  int // number of map types, for scratch
	lists map[reflect.Type]sliceType
}

// compileMessage returns the plan of an object's type, or nil if a declared field has no number. apiVersion and kind
// need no number, because they are in the envelope.
func compileMessage(elem reflect.Type) *messagePlan {
	c := compiler{plans: map[reflect.Type]*messagePlan{}, lists: map[reflect.Type]sliceType{}}
	p, err := c.structOf(elem, true)
	if metadata := p.field(ObjectMetadata); err != nil || metadata == nil || metadata.name != "metadata" {
		return nil // the numbers have another meaning
	}
	p.shareStructs(elem)
	if m := p.field(ObjectMetadata).message; m != nil {
		for _, number := range [...]protowire.Number{metadataName, metadataUID, metadataVersion} {
			if f := m.field(number); f != nil {
				f.unique = true
			}
		}
	}
	return p
}

// errNoNumber is the reason why a type cannot be decoded from protobuf.
var errNoNumber = errors.New("a type that protobuf has no place for")

func (c *compiler) structOf(t reflect.Type, root bool) (*messagePlan, error) {
	if p, ok := c.plans[t]; ok {
		return p, nil
	}
	p := &messagePlan{quantity: plan.HasQuantity(t)}
	c.plans[t] = p
	return p, c.fields(p, t, *new(fieldPath), root)
}

// fields adds the fields of t, to which path leads from the plan's struct, to a plan.
func (c *compiler) fields(p *messagePlan, t reflect.Type, path fieldPath, root bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		at := path.to(f)
		number, repeat, ok := wireNumber(f)
		switch {
		case ok && !f.IsExported():
			return errNoNumber
		case ok:
			if err := c.field(p, f, number, repeat, at); err != nil {
				return err
			}
		case f.Anonymous && f.Type == reflect.TypeFor[metav1.TypeMeta]():
		case f.Anonymous && f.Type.Kind() == reflect.Struct && !owns(f.Type) && f.Tag.Get("json") != "-":
			if mayDecodeItself(f.Type) {
				return errNoNumber
			}
			if err := c.fields(p, f.Type, at, root); err != nil {
				return err
			}
		case isDeclared(f, root):
			return errNoNumber
		}
	}
	return nil
}

// isDeclared reports whether a field without a number would be decoded from JSON.
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

// maxWireNumber limits the table of a plan. Kubernetes numbers its fields from 1.
const maxWireNumber = 1 << 10

func (c *compiler) field(p *messagePlan, f reflect.StructField, number protowire.Number, repeat bool, path fieldPath) error {
	if number > maxWireNumber || p.field(number) != nil {
		return errNoNumber
	}
	if int(number) >= len(p.fields) {
		p.fields = append(p.fields, make([]*messageField, int(number)+1-len(p.fields))...)
	}
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		name = f.Name
	}
	encoding, _, _ := strings.Cut(f.Tag.Get("protobuf"), ",")
	field := &messageField{name: name, number: number, path: path, typ: f.Type, part: plan.NewPartKind(false)}
	p.fields[number] = field // before its type is compiled, because that may contain this struct
	set, err := c.setter(f.Type, encoding)
	if err != nil {
		return err
	}
	field.set = set
	c.shorten(field, f.Type, repeat)
	field.content, field.wire = contentOf(f.Type, encoding)
	field.share = c.shareOf(field, f.Type)
	return nil
}

// shorten selects the shorter way to the values of a field, whose setter exists already.
func (c *compiler) shorten(f *messageField, t reflect.Type, repeat bool) {
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		f.kind = fieldTime
	case ownsWire(t):
	case t.Kind() == reflect.String:
		f.kind = fieldText
	case c.plans[t] != nil:
		f.kind, f.message = fieldMessage, c.plans[t]
	case t.Kind() == reflect.Pointer && c.plans[t.Elem()] != nil && !ownsWire(t.Elem()):
		f.kind, f.message, f.elem = fieldPointer, c.plans[t.Elem()], t.Elem()
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && repeat:
		f.kind, f.slice = fieldSlice, c.sliceOf(t)
		if !ownsWire(t.Elem()) {
			f.message = c.plans[t.Elem()]
		}
	}
}

// contentOf returns the kind of the values in a t or behind a pointer t, and their wire type.
func contentOf(t reflect.Type, encoding string) (fieldKind, protowire.Type) {
	if t.Kind() == reflect.Pointer && !ownsWire(t) {
		t = t.Elem()
	}
	wire := wireTypeOf(t, encoding)
	switch {
	case t == reflect.TypeFor[metav1.Time]():
		return fieldTime, wire
	case ownsWire(t):
		return fieldOther, wire
	case wire != protowire.BytesType:
		return fieldNumber, wire
	case t.Kind() == reflect.String:
		return fieldText, wire
	case hasStrings(t):
		return fieldStrings, wire
	default:
		return fieldOther, wire
	}
}

// field returns the field with a number, or nil.
func (p *messagePlan) field(number protowire.Number) *messageField {
	if int(number) < len(p.fields) {
		return p.fields[number]
	}
	return nil
}

// decode reads a message into the struct in a place.
func (p *messagePlan) decode(r *Reader, to place, b []byte) error {
	if r.depth++; r.depth > plan.MaxDepth {
		return plan.ErrTooDeep
	}
	if p.quantity {
		r.quantities++
	}
	for len(b) > 0 {
		if err := r.breaks.pause(b); err != nil {
			return err
		}
		if n := shortField(b); n > 0 {
			f := p.field(protowire.Number(b[0] >> 3))
			if f == nil {
				b = b[n:]
				continue
			}
			if f.kind != fieldOther && (r.parts == nil || f.share == shareNothing) {
				content := b[2:n]
				b = b[n:]
				if err := f.setBytes(r, to.field(f.path), content, b); err != nil {
					return plan.Within(f.name, err)
				}
				continue
			}
		}
		number, typ, n := consumeTag(b)
		if n < 0 {
			return ErrWire
		}
		tagged := b
		b = b[n:]
		f := p.field(number)
		if f == nil {
			if n = skipValueOf(number, typ, b); n < 0 {
				return ErrWire
			}
			b = b[n:]
			continue
		}
		to := to.field(f.path)
		if r.parts != nil && f.share != shareNothing && typ == protowire.BytesType {
			size, err := f.decodeShared(r, to, tagged)
			if err != nil {
				return plan.Within(f.name, err)
			}
			b = tagged[size:]
			continue
		}
		var err error
		if b, err = f.decodeValue(r, to, typ, b); err != nil {
			return plan.Within(f.name, err)
		}
	}
	r.depth--
	return nil
}

// decodeValue sets a field to the value at the beginning of b, behind its tag. It returns the bytes behind the value.
func (f *messageField) decodeValue(r *Reader, to place, typ protowire.Type, b []byte) (rest []byte, err error) {
	if f.kind != fieldOther && typ == protowire.BytesType {
		if content, n := consumeBytes(b); n > 0 {
			return b[n:], f.setBytes(r, to, content, b[n:])
		}
	}
	x, n := consumeValue(typ, b)
	if n < 0 {
		return nil, ErrWire
	}
	if f.kind == fieldSlice {
		f.makeRoom(r, to, typ, b[n:])
	}
	return b[n:], f.set(r, to, x)
}

// setBytes is set for the most frequent kinds of fields. rest is the rest of the message.
func (f *messageField) setBytes(r *Reader, to place, content, rest []byte) error {
	switch f.kind {
	case fieldText:
		if f.unique {
			*in[string](to) = string(content)
		} else {
			*in[string](to) = r.Text(content)
		}
		return nil
	case fieldTime:
		return setTimeOf(to, content)
	case fieldMessage:
		return f.message.decode(r, to, content)
	case fieldPointer:
		return f.message.decode(r, to.target(f.elem), content)
	default: // fieldSlice
		f.makeRoom(r, to, protowire.BytesType, rest)
		if f.message != nil {
			return f.message.decode(r, f.slice.add(to), content)
		}
		return f.set(r, to, wireValue{typ: protowire.BytesType, bytes: content})
	}
}

// makeRoom gives an empty slice room for the current element and for those in rest.
func (f *messageField) makeRoom(r *Reader, to place, typ protowire.Type, rest []byte) {
	if !to.hasRoom() {
		f.slice.make(r, to, 1+f.count(typ, rest))
	}
}

// count returns how often the field follows without a gap in b, the rest of a message. Encoders write all elements of a
// field together.
func (f *messageField) count(typ protowire.Type, b []byte) int {
	for n := 0; ; n++ {
		number, is, tag := consumeTag(b)
		if tag < 0 || number != f.number || is != typ {
			return n
		}
		_, size := consumeValue(typ, b[tag:])
		if size < 0 {
			return n
		}
		b = b[tag+size:]
	}
}

// without returns a copy of the plan that skips one field of one message. If a plan does not decode that message, it
// returns the plan itself.
func (p *messagePlan) without(message, field protowire.Number) *messagePlan {
	outer := p.field(message)
	if outer == nil || outer.message == nil {
		return p
	}
	inner := &messagePlan{fields: slices.Clone(outer.message.fields), quantity: outer.message.quantity}
	if inner.field(field) != nil {
		inner.fields[field] = nil
	}
	pruned := *outer
	pruned.message = inner
	q := &messagePlan{fields: slices.Clone(p.fields), quantity: p.quantity}
	q.fields[message] = &pruned
	return q
}

func (p *messagePlan) setMessage(r *Reader, to place, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	return p.decode(r, to, x.bytes)
}
