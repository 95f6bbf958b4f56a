package wireplan

import (
	"math"
	"reflect"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/codec/internal/plan"
)

// setter returns the function that sets a t to the values of a field. encoding is the first word of its tag.
func (c *compiler) setter(t reflect.Type, encoding string) (setWire, error) {
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		return setQuantity, nil
	case t == reflect.TypeFor[metav1.Time]():
		return setTime, nil
	case t == reflect.TypeFor[metav1.MicroTime]():
		return setMicroTime, nil
	case ownsWire(t):
		return setterOfOwn(t), nil
	case mayDecodeItself(t):
		return nil, errNoNumber
	}
	switch t.Kind() {
	case reflect.String:
		return setString, nil
	case reflect.Struct:
		p, err := c.structOf(t, false)
		if err != nil {
			return nil, err
		}
		return p.setMessage, nil
	case reflect.Pointer:
		return c.pointer(t, encoding)
	case reflect.Slice:
		return c.slice(t, encoding)
	case reflect.Map:
		return c.mapOf(t)
	default:
		return numberSetter(t, encoding)
	}
}

// setterOfOwn is for types with their own Unmarshal.
func setterOfOwn(t reflect.Type) setWire {
	return func(_ *Reader, to place, x wireValue) error {
		if err := x.want(protowire.BytesType); err != nil {
			return err
		}
		if own.Unmarshal(to.value(t).Addr().Interface(), x.bytes) != nil {
			return plan.Misfit(plan.AMessage, t) // what the method said may quote the message
		}
		return nil
	}
}

// setQuantity differs from Unmarshal in one way: the string is shared.
func setQuantity(r *Reader, to place, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	r.quantities++
	text, ok := quantityText(x.bytes)
	if !ok {
		if len(x.bytes) > plan.MaxQuantity || in[resource.Quantity](to).Unmarshal(x.bytes) != nil {
			return plan.Misfit(plan.AMessage, reflect.TypeFor[resource.Quantity]())
		}
		return nil
	}
	q, err := resource.ParseQuantity(r.Text(text))
	if err != nil {
		return plan.Misfit(plan.AMessage, reflect.TypeFor[resource.Quantity]())
	}
	*in[resource.Quantity](to) = q
	return nil
}

// quantityText returns the text in the message of a quantity, if the message contains only one short text.
func quantityText(b []byte) (text []byte, ok bool) {
	if len(b) <= 2 || b[0] != 1<<3|byte(protowire.BytesType) || b[1] >= 0x80 || int(b[1]) != len(b)-2 {
		return nil, false
	}
	return b[2:], true
}

// setTime does the same as Unmarshal of metav1.Time, which ignores the nanoseconds.
func setTime(_ *Reader, to place, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	return setTimeOf(to, x.bytes)
}

// setTimeOf is setTime for the message of a time.
func setTimeOf(to place, b []byte) error {
	t := in[metav1.Time](to)
	seconds, ok := timeSeconds(b)
	if !ok {
		if t.Unmarshal(b) != nil {
			return plan.Misfit(plan.AMessage, reflect.TypeFor[metav1.Time]())
		}
		return nil
	}
	t.Time = time.Unix(seconds, 0)
	return nil
}

// setMicroTime is for the times of leases and events.
func setMicroTime(_ *Reader, to place, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	if in[metav1.MicroTime](to).Unmarshal(x.bytes) != nil {
		return plan.Misfit(plan.AMessage, reflect.TypeFor[metav1.MicroTime]())
	}
	return nil
}

// timeSeconds returns the seconds in the message of a time, if they come first and only nanoseconds follow.
func timeSeconds(b []byte) (seconds int64, ok bool) {
	if len(b) == 0 || b[0] != 1<<3|byte(protowire.VarintType) {
		return 0, false
	}
	x, n := protowire.ConsumeVarint(b[1:])
	if n < 0 {
		return 0, false
	}
	b = b[1+n:]
	return int64(x), len(b) == 0 || len(b) == 2 && b[0] == 2<<3|byte(protowire.VarintType) && b[1] < 0x80
}

func setString(r *Reader, to place, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	*in[string](to) = r.Text(x.bytes)
	return nil
}

func setBytes(_ *Reader, to place, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	*in[[]byte](to) = append(make([]byte, 0, len(x.bytes)), x.bytes...)
	return nil
}

func (c *compiler) pointer(t reflect.Type, encoding string) (setWire, error) {
	if t.Elem().Kind() == reflect.Pointer {
		return nil, errNoNumber
	}
	set, err := c.setter(t.Elem(), encoding)
	return func(r *Reader, to place, x wireValue) error {
		return set(r, to.target(t.Elem()), x)
	}, err
}

// slice appends to the existing elements. Numbers may be packed, many in one value.
func (c *compiler) slice(t reflect.Type, encoding string) (setWire, error) {
	if fits[[]byte](t) {
		return setBytes, nil
	}
	if k := t.Elem().Kind(); k == reflect.Map || k == reflect.Slice && t.Elem().Elem().Kind() != reflect.Uint8 && !ownsWire(t.Elem()) {
		return nil, errNoNumber
	}
	set, err := c.setter(t.Elem(), encoding)
	s := c.sliceOf(t)
	add := func(r *Reader, to place, x wireValue) error { return set(r, s.add(to), x) }
	scalar := wireTypeOf(t.Elem(), encoding)
	if scalar == protowire.BytesType {
		return add, err
	}
	return func(r *Reader, to place, x wireValue) error {
		if x.typ != protowire.BytesType {
			return add(r, to, x)
		}
		for b := x.bytes; len(b) > 0; {
			if err := r.breaks.pause(b); err != nil {
				return err
			}
			one, n := consumeValue(scalar, b)
			if n < 0 {
				return ErrWire
			}
			if err := add(r, to, one); err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	}, err
}

// sliceType adds elements to slices of one type.
type sliceType struct {
	number int // of the type, for scratch
	typ    reflect.Type
	size   uintptr // of an element
}

func (c *compiler) sliceOf(t reflect.Type) sliceType {
	s, ok := c.lists[t]
	if !ok {
		s = sliceType{number: len(c.lists), typ: t, size: t.Elem().Size()}
		c.lists[t] = s
	}
	return s
}

// make gives the empty slice in a place room for n elements.
func (s *sliceType) make(r *Reader, to place, n int) {
	room := r.scratch.Slice(s.number, s.typ)
	plan.MakeRoom(room.Elem(), n)
	to.moveSlice(placeOf(room))
}

// add returns the place of one more element.
func (s *sliceType) add(to place) place {
	if to.isFull() {
		to.value(s.typ).Grow(1)
	}
	return to.extend(s.size)
}

// wireTypeOf returns the wire type of a t.
func wireTypeOf(t reflect.Type, encoding string) protowire.Type {
	switch t.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Int, reflect.Uint32, reflect.Uint64, reflect.Uint, reflect.Float32, reflect.Float64:
	default:
		return protowire.BytesType
	}
	switch encoding {
	case "fixed32":
		return protowire.Fixed32Type
	case "fixed64":
		return protowire.Fixed64Type
	default:
		return protowire.VarintType
	}
}

// numberSetter is setter for numbers and booleans.
func numberSetter(t reflect.Type, encoding string) (setWire, error) {
	typ := wireTypeOf(t, encoding)
	var set func(to place, x uint64)
	switch kind := t.Kind(); {
	case kind == reflect.Bool && typ == protowire.VarintType:
		set = func(to place, x uint64) { *in[bool](to) = x != 0 }
	case kind == reflect.Float64 && typ == protowire.Fixed64Type:
		set = func(to place, x uint64) { *in[float64](to) = math.Float64frombits(x) }
	case kind == reflect.Float32 && typ == protowire.Fixed32Type:
		set = func(to place, x uint64) { *in[float32](to) = math.Float32frombits(uint32(x)) }
	case kind == reflect.Int || kind == reflect.Int64 || kind == reflect.Int32:
		set = setInteger(t, typ == protowire.Fixed32Type, encoding == "zigzag32" || encoding == "zigzag64")
	case kind == reflect.Uint || kind == reflect.Uint64 || kind == reflect.Uint32:
		set = setInteger(t, false, false)
	default:
		return nil, errNoNumber
	}
	return func(_ *Reader, to place, x wireValue) error {
		if err := x.want(typ); err != nil {
			return err
		}
		set(to, x.number)
		return nil
	}, nil
}

// setInteger returns the function that sets a signed or unsigned integer. A value that is fixed to 32 bits on the wire
// has its sign in those bits.
func setInteger(t reflect.Type, fixed32, zigzag bool) func(to place, x uint64) {
	narrow := t.Size() == 4
	return func(to place, x uint64) {
		if zigzag {
			x = uint64(protowire.DecodeZigZag(x))
		}
		switch {
		case narrow:
			to.put32(uint32(x))
		case fixed32:
			to.put64(uint64(int32(x)))
		default:
			to.put64(x)
		}
	}
}
