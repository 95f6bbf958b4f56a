package codec

import (
	"math"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
)

// setter returns what puts values of a field into a t; encoding is the first word of its tag.
func (c *wireCompiler) setter(t reflect.Type, encoding string) (setWire, error) {
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		return setQuantity, nil
	case ownsWire(t):
		return setOwn, nil
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

// setOwn is for what decodes itself.
func setOwn(_ *wireReader, v reflect.Value, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	return v.Addr().Interface().(wire).Unmarshal(x.bytes)
}

// setQuantity differs from its Unmarshal in that the string is shared.
func setQuantity(r *wireReader, v reflect.Value, x wireValue) error {
	if b := x.bytes; x.typ == protowire.BytesType && len(b) > 2 && b[0] == 1<<3|byte(protowire.BytesType) && b[1] < 0x80 && int(b[1]) == len(b)-2 {
		q, err := resource.ParseQuantity(r.strings.intern(b[2:]))
		if err == nil {
			*v.Addr().Interface().(*resource.Quantity) = q
		}
		return err
	}
	return setOwn(r, v, x)
}

func setString(r *wireReader, v reflect.Value, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	v.SetString(r.strings.intern(x.bytes))
	return nil
}

func setBytes(_ *wireReader, v reflect.Value, x wireValue) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	v.SetBytes(append(make([]byte, 0, len(x.bytes)), x.bytes...))
	return nil
}

func (c *wireCompiler) pointer(t reflect.Type, encoding string) (setWire, error) {
	if t.Elem().Kind() == reflect.Pointer {
		return nil, errNoNumber
	}
	set, err := c.setter(t.Elem(), encoding)
	return func(r *wireReader, v reflect.Value, x wireValue) error {
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		return set(r, v.Elem(), x)
	}, err
}

// slice appends to what is there. Numbers may come packed, many of them in one value.
func (c *wireCompiler) slice(t reflect.Type, encoding string) (setWire, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return setBytes, nil
	}
	if k := t.Elem().Kind(); k == reflect.Map || k == reflect.Slice && t.Elem().Elem().Kind() != reflect.Uint8 && !ownsWire(t.Elem()) {
		return nil, errNoNumber
	}
	set, err := c.setter(t.Elem(), encoding)
	add := func(r *wireReader, v reflect.Value, x wireValue) error {
		n := v.Len()
		if n == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(n + 1)
		return set(r, v.Index(n), x)
	}
	scalar := wireTypeOf(t.Elem(), encoding)
	if scalar == protowire.BytesType {
		return add, err
	}
	return func(r *wireReader, v reflect.Value, x wireValue) error {
		if x.typ != protowire.BytesType {
			return add(r, v, x)
		}
		for b := x.bytes; len(b) > 0; {
			one, n := consumeValue(scalar, b)
			if n < 0 {
				return errWire
			}
			if err := add(r, v, one); err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	}, err
}

// wireTypeOf is how a value of t stands on the wire.
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
	zigzag := encoding == "zigzag32" || encoding == "zigzag64"
	var set func(v reflect.Value, x uint64)
	switch kind := t.Kind(); {
	case kind == reflect.Bool && typ == protowire.VarintType:
		set = func(v reflect.Value, x uint64) { v.SetBool(x != 0) }
	case kind == reflect.Float64 && typ == protowire.Fixed64Type:
		set = func(v reflect.Value, x uint64) { v.SetFloat(math.Float64frombits(x)) }
	case kind == reflect.Float32 && typ == protowire.Fixed32Type:
		set = func(v reflect.Value, x uint64) { v.SetFloat(float64(math.Float32frombits(uint32(x)))) }
	case kind == reflect.Int || kind == reflect.Int64 || kind == reflect.Int32:
		narrow := kind == reflect.Int32 || typ == protowire.Fixed32Type
		set = func(v reflect.Value, x uint64) {
			if zigzag {
				x = uint64(protowire.DecodeZigZag(x))
			}
			if narrow {
				x = uint64(int32(x))
			}
			v.SetInt(int64(x))
		}
	case kind == reflect.Uint || kind == reflect.Uint64 || kind == reflect.Uint32:
		set = func(v reflect.Value, x uint64) { v.SetUint(x) }
	default:
		return nil, errNoNumber
	}
	return func(_ *wireReader, v reflect.Value, x wireValue) error {
		if err := x.want(typ); err != nil {
			return err
		}
		set(v, x.number)
		return nil
	}, nil
}

// mapOf reads the entries of a map: messages of a key and a value, each of which is zero where it is missing.
func (c *wireCompiler) mapOf(t reflect.Type) (setWire, error) {
	if k := t.Elem().Kind(); k == reflect.Map || k == reflect.Slice && t.Elem().Elem().Kind() != reflect.Uint8 && !ownsWire(t.Elem()) {
		return nil, errNoNumber
	}
	key, err := c.setter(t.Key(), "varint")
	if err != nil || !slices.Contains([]reflect.Kind{reflect.String, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Bool}, t.Key().Kind()) {
		return nil, errNoNumber
	}
	at := c.maps
	c.maps++
	value, err := c.setter(t.Elem(), "varint")
	if t == reflect.TypeFor[map[string]string]() {
		return setStringEntry, err
	}
	return func(r *wireReader, v reflect.Value, x wireValue) error {
		if v.IsNil() {
			v.Set(reflect.MakeMap(t))
		}
		e := r.scratch.take(at, t)
		err := eachOfEntry(x, func(number protowire.Number, x wireValue) error {
			if number == entryKey {
				return key(r, e.key, x)
			}
			return value(r, e.value, x)
		})
		if err == nil {
			e.moveTo(v)
			r.scratch.put(at, e)
		}
		return err
	}, err
}

// The fields of an entry of a map.
const (
	entryKey   = 1
	entryValue = 2
)

// eachOfEntry calls set for the key and the value in an entry of a map.
func eachOfEntry(x wireValue, set func(number protowire.Number, x wireValue) error) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	for b := x.bytes; len(b) > 0; {
		number, typ, n := consumeTag(b)
		if n < 0 {
			return errWire
		}
		size := protowire.ConsumeFieldValue(number, typ, b[n:])
		if size < 0 {
			return errWire
		}
		if number == entryKey || number == entryValue {
			one, m := consumeValue(typ, b[n:])
			if m < 0 {
				return errWire
			}
			if err := set(number, one); err != nil {
				return err
			}
		}
		b = b[n+size:]
	}
	return nil
}

// setStringEntry is mapOf for labels and annotations.
func setStringEntry(r *wireReader, v reflect.Value, x wireValue) error {
	to := v.Addr().Interface().(*map[string]string)
	if *to == nil {
		*to = map[string]string{}
	}
	var key, value []byte
	err := eachOfEntry(x, func(number protowire.Number, x wireValue) error {
		if number == entryKey {
			key = x.bytes
		} else {
			value = x.bytes
		}
		return x.want(protowire.BytesType)
	})
	if err == nil {
		(*to)[r.strings.intern(key)] = r.strings.intern(value)
	}
	return err
}
