package store

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/leatproject/leat/testserver/internal/object"
)

// encoder appends JSON as encoding/json writes it. It keeps the first error.
//
// It encodes the values of most trees itself, because encoding/json allocates twice for each map and uses reflection.
type encoder struct {
	out    []byte
	names  []string // the names of the maps that are being encoded, the innermost last
	first  bool     // no comma before the next member
	err    error
	values *json.Encoder     // writes to the encoder
	texts  map[string]string // what shared returned
}

// The encoder remembers at most so many texts to share, with at most so many bytes each.
const (
	mostShared = 4 << 10
	mostTexts  = 256
)

// shared returns a text: the same string as before, if it still remembers the text. Objects that one client created in
// one second have equal managedFields, and objects of one template have equal contents.
func (e *encoder) shared(text []byte) string {
	if len(text) > mostShared {
		return string(text)
	}
	if known, ok := e.texts[string(text)]; ok {
		return known
	}
	if len(e.texts) >= mostTexts {
		clear(e.texts)
	}
	s := string(text)
	e.texts[s] = s
	return s
}

// encoders keep the buffers in which records are encoded.
var encoders = sync.Pool{New: func() any {
	e := &encoder{texts: map[string]string{}}
	e.values = json.NewEncoder(e)
	return e
}}

// Write implements io.Writer.
func (e *encoder) Write(p []byte) (int, error) {
	e.out = append(e.out, p...)
	return len(p), nil
}

func (e *encoder) raw(s string) {
	e.out = append(e.out, s...)
	e.first = true
}

func (e *encoder) member(name string, value any) {
	if !e.first {
		e.out = append(e.out, ',')
	}
	e.first = false
	e.text(name)
	e.out = append(e.out, ':')
	e.value(value)
}

// sorted yields the names in a map in an order. The map must not change meanwhile.
func (e *encoder) sorted(m object.Tree, order func(a, b string) int) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := len(e.names)
		for name := range m {
			e.names = append(e.names, name)
		}
		end := len(e.names)
		slices.SortFunc(e.names[start:], order)
		for i := start; i < end && yield(e.names[i]); i++ { // an inner map may have moved the names
		}
		clear(e.names[start:end])
		e.names = e.names[:start]
	}
}

// value appends a value.
func (e *encoder) value(value any) {
	switch v := value.(type) {
	case nil:
		e.out = append(e.out, "null"...)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	case string:
		e.text(v)
	case object.Tree:
		e.object(v)
	case []any:
		e.array(v)
	default:
		e.reflected(v)
	}
}

func (e *encoder) object(m object.Tree) {
	if m == nil {
		e.out = append(e.out, "null"...)
		return
	}
	e.raw("{")
	for name := range e.sorted(m, strings.Compare) {
		e.member(name, m[name])
	}
	e.out = append(e.out, '}')
	e.first = false
}

func (e *encoder) array(list []any) {
	if list == nil {
		e.out = append(e.out, "null"...)
		return
	}
	e.out = append(e.out, '[')
	for i, v := range list {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.value(v)
	}
	e.out = append(e.out, ']')
}

// text appends a string.
func (e *encoder) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			e.reflected(s)
			return
		}
	}
	e.out = append(append(append(e.out, '"'), s...), '"')
}

// reflected appends a value with encoding/json.
func (e *encoder) reflected(value any) {
	if err := e.values.Encode(value); err != nil {
		e.err = cmp.Or(e.err, err)
		return
	}
	e.out = e.out[:len(e.out)-1] // the line break after each value
}
