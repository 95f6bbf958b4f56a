package codec

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeMap decodes an object, which the scanner has passed, into maps, slices, strings, int64s, float64s, booleans and
// nils, as sigs.k8s.io/json does: a number without a fraction or exponent that fits is an int64.
func decodeMap(b []byte, n *names) (map[string]any, error) {
	d := genericDecoder{b: b, names: n}
	return d.object()
}

// names keeps the names of members that were seen lately, so that the objects of a list share them. It is bounded, and
// a name that shares its place with another costs an allocation now and then.
type names [256]string

func (n *names) intern(b []byte) string {
	if len(b) == 0 || len(b) > 64 {
		return string(b)
	}
	h := uint(len(b))*7 ^ uint(b[0])*31 ^ uint(b[len(b)-1])*131 ^ uint(b[len(b)/2])*17
	at := &n[h%uint(len(n))]
	if *at != string(b) {
		*at = string(b)
	}
	return *at
}

// genericDecoder walks over trusted bytes, so that it has no syntax to check and no end to fear.
type genericDecoder struct {
	b     []byte
	i     int
	names *names
}

// peek skips white space and returns the byte behind it.
func (d *genericDecoder) peek() byte {
	d.i = skipSpace(d.b, d.i)
	return d.b[d.i]
}

func (d *genericDecoder) value() (any, error) {
	switch d.peek() {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.str(), nil
	case 't':
		d.i += len("true")
		return true, nil
	case 'f':
		d.i += len("false")
		return false, nil
	case 'n':
		d.i += len("null")
		return nil, nil
	default:
		return d.number()
	}
}

func (d *genericDecoder) object() (map[string]any, error) {
	m := map[string]any{}
	for d.i++; d.peek() != '}'; {
		if d.b[d.i] == ',' {
			d.i++
			d.peek()
		}
		name := d.name()
		d.peek() // the colon
		d.i++
		value, err := d.value()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m[name] = value
	}
	d.i++
	return m, nil
}

func (d *genericDecoder) array() ([]any, error) {
	a := []any{}
	for d.i++; d.peek() != ']'; {
		if d.b[d.i] == ',' {
			d.i++
		}
		value, err := d.value()
		if err != nil {
			return nil, err
		}
		a = append(a, value)
	}
	d.i++
	return a, nil
}

func (d *genericDecoder) name() string {
	content, plain := d.content()
	if !plain {
		return string(content)
	}
	return d.names.intern(content)
}

func (d *genericDecoder) str() string {
	content, _ := d.content()
	return string(content)
}

// content consumes a string and returns what it holds; plain says that it aliases the answer.
func (d *genericDecoder) content() (content []byte, plain bool) {
	from := d.i
	d.i = skipString(d.b, from)
	quoted := d.b[from:d.i]
	content = quoted[1 : len(quoted)-1]
	if bytes.IndexByte(content, '\\') < 0 && utf8.Valid(content) {
		return content, true
	}
	content, _ = jsontext.AppendUnquote(nil, quoted) // its error is about bad UTF-8, which it has replaced
	return content, false
}

func (d *genericDecoder) number() (any, error) {
	from := d.i
	for d.i < len(d.b) && !delimits(d.b[d.i]) {
		d.i++
	}
	digits := string(d.b[from:d.i])
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s does not fit a float64", digits)
	}
	return f, nil
}
