package typed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// Decode decodes JSON into a pointer to an empty struct, as UnmarshalStrict of sigs.k8s.io/json does, in a third of the
// time. It returns false for what is rare in objects: malformed JSON, unknown and repeated members, values of other
// types. into may then have some of the members, and the caller decodes the JSON with the other function.
func Decode(body []byte, into any) bool {
	v, p, err := structOf(into)
	if err != nil {
		return false
	}
	d := decoder{data: body}
	return d.next() == '{' && d.record(p, v) && d.next() == 0 && d.at == len(d.data)
}

// maxDepth limits the depth of objects in objects. Only schemas are deeper than 20.
const maxDepth = 200

type decoder struct {
	data  []byte
	at    int
	depth int
}

// next skips white space and returns the character after it, or 0 at the end.
func (d *decoder) next() byte {
	for ; d.at < len(d.data); d.at++ {
		switch c := d.data[d.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take skips white space and one character, if it is the wanted one.
func (d *decoder) take(want byte) bool {
	if d.next() != want {
		return false
	}
	d.at++
	return true
}

// word skips a word, if it comes next.
func (d *decoder) word(want string) bool {
	if !bytes.HasPrefix(d.data[d.at:], []byte(want)) {
		return false
	}
	d.at += len(want)
	return true
}

// value decodes one value. All methods return false for what Decode does not decode.
func (d *decoder) value(p *plan, v reflect.Value) bool {
	c := d.next()
	if p.form == converted {
		return d.converted(c, v)
	}
	if c == 'n' {
		if p.form == pointer || p.form >= list && p.form <= texts {
			v.SetZero()
		}
		return d.word("null")
	}
	switch p.form {
	case text:
		s, ok := d.text()
		v.SetString(s)
		return ok
	case flag:
		v.SetBool(c == 't')
		return d.word("true") || d.word("false")
	case integer:
		n, ok := d.integer()
		v.SetInt(n)
		return ok && !v.OverflowInt(n)
	case blob:
		return d.blob(v)
	case list:
		return d.list(p, v)
	case texts:
		return d.texts(v)
	case dictionary:
		return d.dictionary(p, v)
	case pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(p.elem, v.Elem())
	case record:
		return d.record(p, v)
	}
	return false
}

func (d *decoder) record(p *plan, v reflect.Value) bool {
	var seen [2]uint64
	if p.err != nil || len(p.fields) > 64*len(seen) {
		return false
	}
	return d.members(func(name []byte) bool {
		i, known := p.names[string(name)]
		if !known || seen[i/64]&(1<<(i%64)) != 0 {
			return false
		}
		seen[i/64] |= 1 << (i % 64)
		f := &p.fields[i]
		return d.value(f.plan, f.of(v))
	})
}

// members calls member for each member of an object, to decode its value.
func (d *decoder) members(member func(name []byte) bool) bool {
	if d.depth++; d.depth > maxDepth || !d.take('{') {
		return false
	}
	defer func() { d.depth-- }()
	if d.take('}') {
		return true
	}
	for {
		if d.next() != '"' {
			return false
		}
		name, plain, ok := d.literal()
		if !ok || !plain || !d.take(':') || !member(name[1:len(name)-1]) {
			return false
		}
		if !d.take(',') {
			return d.take('}')
		}
	}
}

func (d *decoder) list(p *plan, v reflect.Value) bool {
	if d.depth++; d.depth > maxDepth || !d.take('[') {
		return false
	}
	defer func() { d.depth-- }()
	if d.take(']') {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		return true
	}
	for n := 0; ; n++ {
		if n == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(n + 1)
		if !d.value(p.elem, v.Index(n)) {
			return false
		}
		if !d.take(',') {
			return d.take(']')
		}
	}
}

func (d *decoder) texts(v reflect.Value) bool {
	out := map[string]string{}
	ok := d.members(func(name []byte) bool {
		if _, repeated := out[string(name)]; repeated || d.next() != '"' {
			return false
		}
		text, ok := d.text()
		out[string(name)] = text
		return ok
	})
	v.Set(reflect.ValueOf(out).Convert(v.Type()))
	return ok
}

func (d *decoder) dictionary(p *plan, v reflect.Value) bool {
	if p.err != nil {
		return false
	}
	v.Set(reflect.MakeMap(v.Type()))
	return d.members(func(name []byte) bool {
		key := reflect.ValueOf(string(name)).Convert(v.Type().Key())
		member := reflect.New(v.Type().Elem()).Elem()
		if v.MapIndex(key).IsValid() || !d.value(p.elem, member) {
			return false
		}
		v.SetMapIndex(key, member)
		return true
	})
}

// converted decodes a value that decodes itself.
func (d *decoder) converted(first byte, v reflect.Value) bool {
	if v.Kind() == reflect.Pointer {
		if first == 'n' {
			v.SetZero()
			return d.word("null")
		}
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	own, ok := v.Addr().Interface().(json.Unmarshaler)
	if !ok {
		return false
	}
	start := d.at
	switch first {
	case '"':
		var raw []byte
		var plain bool
		raw, plain, ok = d.literal()
		ok = ok && (plain || json.Valid(raw))
	case 'n':
		ok = d.word("null")
	case '{', '[':
		ok = d.skip() && json.Valid(d.data[start:d.at])
	default:
		_, ok = d.integer()
	}
	return ok && own.UnmarshalJSON(d.data[start:d.at]) == nil
}

// skip skips an object or a list, whose JSON may be malformed.
func (d *decoder) skip() bool {
	open := 0
	for d.at < len(d.data) {
		switch d.data[d.at] {
		case '{', '[':
			open++
		case '}', ']':
			open--
		case '"':
			if _, _, ok := d.literal(); !ok {
				return false
			}
			continue
		}
		d.at++
		if open == 0 {
			return true
		}
	}
	return false
}

// literal skips a text and returns it with its quotation marks. plain says that the text has no escapes.
func (d *decoder) literal() (raw []byte, plain, ok bool) {
	start := d.at
	plain, ascii := true, true
	for at := start + 1; at < len(d.data); at++ {
		switch c := d.data[at]; {
		case c == '"':
			d.at = at + 1
			raw = d.data[start:d.at]
			return raw, plain, ascii || utf8.Valid(raw)
		case c == '\\':
			plain = false
			at++
		case c < ' ':
			return nil, false, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false, false
}

func (d *decoder) text() (string, bool) {
	if d.next() != '"' {
		return "", false
	}
	raw, plain, ok := d.literal()
	switch {
	case !ok:
		return "", false
	case plain:
		return string(raw[1 : len(raw)-1]), true
	}
	var out string
	err := json.Unmarshal(raw, &out)
	return out, err == nil
}

// integer decodes a number without a fraction and an exponent.
func (d *decoder) integer() (int64, bool) {
	start := d.at
	if d.at < len(d.data) && d.data[d.at] == '-' {
		d.at++
	}
	digits := d.at
	for d.at < len(d.data) && '0' <= d.data[d.at] && d.data[d.at] <= '9' {
		d.at++
	}
	if d.at == digits || d.data[digits] == '0' && d.at > digits+1 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(d.data[start:d.at]), 10, 64)
	return n, err == nil // a fraction or an exponent is no valid end of the value
}

// blob decodes bytes.
func (d *decoder) blob(v reflect.Value) bool {
	text, ok := d.text()
	if !ok {
		return false
	}
	out, err := base64.StdEncoding.DecodeString(text)
	v.SetBytes(out)
	return err == nil
}
