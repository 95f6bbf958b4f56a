package wireplan

import (
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mapOf reads the entries of a map: messages of a key and a value. A missing key or value is zero, but a slice is empty
// and not nil, as in generated code. Of several values in one entry, the last one counts.
func (c *compiler) mapOf(t reflect.Type) (setWire, error) {
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
	none := reflect.Zero(t.Elem())
	if t.Elem().Kind() == reflect.Slice {
		none = reflect.MakeSlice(t.Elem(), 0, 0)
	}
	set := func(r *Reader, to place, x wireValue) error {
		m := to.value(t)
		if m.IsNil() {
			m.Set(reflect.MakeMap(t))
		}
		e := r.scratch.Take(at, t)
		e.Value.Set(none)
		err := eachOfEntry(r, x, func(number protowire.Number, x wireValue) error {
			if number == EntryKey {
				return key(r, placeOf(e.Key.Addr()), x)
			}
			e.Value.Set(none)
			return value(r, placeOf(e.Value.Addr()), x)
		})
		if err == nil {
			e.MoveTo(m)
			r.scratch.Put(at, e)
		}
		return err
	}
	switch {
	case t.Key().Kind() != reflect.String || ownsWire(t.Key()):
	case fits[map[string]string](t) && !ownsWire(t.Elem()):
		return orSet(setStringEntry, set), err
	case fits[map[string]resource.Quantity](t):
		return orSet(setQuantityEntry, set), err
	}
	return set, err
}

// orSet sets a map entry with short if that accepts it, otherwise with long.
func orSet(short func(r *Reader, to place, key, value []byte) bool, long setWire) setWire {
	return func(r *Reader, to place, x wireValue) error {
		if key, value, plain := plainEntry(x.bytes); plain && short(r, to, key, value) {
			return nil
		}
		return long(r, to, x)
	}
}

// plainEntry returns the key and the value of an entry that has exactly these two fields, both length-delimited.
func plainEntry(b []byte) (key, value []byte, ok bool) {
	if len(b) == 0 || b[0] != EntryKey<<3|byte(protowire.BytesType) {
		return nil, nil, false
	}
	key, n := consumeBytes(b[1:])
	if n < 0 || len(b) <= 1+n || b[1+n] != EntryValue<<3|byte(protowire.BytesType) {
		return nil, nil, false
	}
	b = b[2+n:]
	value, n = consumeBytes(b)
	return key, value, n == len(b)
}

// setStringEntry is for labels and annotations.
func setStringEntry(r *Reader, to place, key, value []byte) bool {
	m := in[map[string]string](to)
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[r.Text(key)] = r.Text(value)
	return true
}

// setQuantityEntry is for the resources of containers and nodes.
func setQuantityEntry(r *Reader, to place, key, value []byte) bool {
	text, ok := quantityText(value)
	if !ok {
		return false
	}
	q, err := resource.ParseQuantity(r.Text(text))
	if err != nil {
		return false
	}
	m := in[map[string]resource.Quantity](to)
	if *m == nil {
		*m = map[string]resource.Quantity{}
	}
	(*m)[r.Text(key)] = q
	return true
}

// These are the fields of a map entry.
const (
	EntryKey   = 1
	EntryValue = 2
)

// eachOfEntry calls set for the key and the value of a map entry.
func eachOfEntry(r *Reader, x wireValue, set func(number protowire.Number, x wireValue) error) error {
	if err := x.want(protowire.BytesType); err != nil {
		return err
	}
	for b := x.bytes; len(b) > 0; {
		if err := r.breaks.pause(b); err != nil {
			return err
		}
		number, typ, n := consumeTag(b)
		if n < 0 {
			return ErrWire
		}
		size := protowire.ConsumeFieldValue(number, typ, b[n:])
		if size < 0 {
			return ErrWire
		}
		if number == EntryKey || number == EntryValue {
			one, m := consumeValue(typ, b[n:])
			if m < 0 {
				return ErrWire
			}
			if err := set(number, one); err != nil {
				return err
			}
		}
		b = b[n+size:]
	}
	return nil
}
