package codec

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// span is where something stands in the bytes of a value. The zero span is nowhere.
type span struct{ from, to int }

func (p span) in(b []byte) []byte { return b[p.from:p.to] }

// outline is where, in the bytes of an object, the members stand that are read before the rest. The scanner fills it in
// passing. The last of members of one name counts, and repeated says that there was another.
type outline struct {
	apiVersion, kind, metadata span
	repeated                   bool

	current *span // of the member being scanned; nil when it is none of the three
}

// open is told the name of a member of the object, in its quotes.
func (o *outline) open(name []byte) {
	switch string(text(name)) {
	case "metadata":
		o.current = &o.metadata
	case "kind":
		o.current = &o.kind
	case "apiVersion":
		o.current = &o.apiVersion
	default:
		o.current = nil
	}
}

// begin is told where the member's value begins.
func (o *outline) begin(i int) {
	if o.current != nil {
		o.repeated = o.repeated || o.current.to > 0
		o.current.from = i
	}
}

// close is told where it ends.
func (o *outline) close(i int) {
	if o != nil && o.current != nil {
		o.current.to = i
		o.current = nil
	}
}

// move lets the spans count from n bytes earlier.
func (o *outline) move(n int) {
	for _, p := range []*span{&o.apiVersion, &o.kind, &o.metadata} {
		if p.to > 0 {
			p.from, p.to = p.from+n, p.to+n
		}
	}
}

// text is the content of a string of JSON. It allocates only if the string has escapes.
func text(quoted []byte) []byte {
	content := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(content, '\\') < 0 {
		return content
	}
	unquoted, _ := jsontext.AppendUnquote(nil, quoted) // the scanner saw that it is a string; bad UTF-8 is replaced
	return unquoted
}

// textOf is text of a value, and nil of one that is not a string.
func textOf(value []byte) []byte {
	if len(value) == 0 || value[0] != '"' {
		return nil
	}
	return text(value)
}
