package codec

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// span is where something stands in the bytes of a value. The zero span is nowhere.
type span struct{ from, to int }

func (p span) in(b []byte) []byte { return b[p.from:p.to] }

// token is where a name, a string, a number, a literal or a delimiter of an array or object stands.
type token struct {
	// from is where it begins. The bit odd marks a string that has escapes or bytes beyond ASCII, so that what it holds
	// may be something else than its bytes.
	from uint32
	// to is where it ends; for the delimiter that opens an array or object, the index of the token that closes it.
	to uint32
}

const (
	odd = 1 << 31 // of token.from

	// maxNoted bounds the positions that a token can have.
	maxNoted = odd - 1
	// firstTokens is how many there is room for at first: those of an ordinary object.
	firstTokens = 1 << 10
	// keptTokens is how many tokens an outline may keep room for when nothing is in it.
	keptTokens = 64 << 10
	// bytesPerToken is how many bytes a token must stand for in a large object, so that an object of nothing but brackets
	// does not cost a multiple of the limit. In real ones it is about nine; three megabytes, the most that kube-apiserver
	// takes, pass whatever they hold.
	bytesPerToken = 4
)

func (t token) start() int { return int(t.from &^ odd) }

// outline is what the scanner notes of a value in passing: where each token stands, and where each array and object
// ends. What is decoded afterwards is not searched again, and what is not decoded is stepped over. It counts from where
// the scanner counts, and takes eight bytes a token.
type outline struct{ tokens []token }

// reset makes the outline ready for another value.
func (o *outline) reset() {
	if cap(o.tokens) > keptTokens || o.tokens == nil {
		o.tokens = make([]token, 0, firstTokens)
	}
	o.tokens = o.tokens[:0]
}

// exceeds tells whether there are more tokens than an object of limit bytes may have. There cannot be many between two
// commas.
func (o *outline) exceeds(limit int) bool {
	return o != nil && len(o.tokens) > max(limit/bytesPerToken, keptTokens)
}

// note adds a token that is no delimiter. A nil outline takes no notes.
func (o *outline) note(from, to int, flag uint32) {
	if o != nil {
		o.tokens = append(o.tokens, token{uint32(from) | flag, uint32(to)})
	}
}

// open adds the delimiter that opens an array or object, and returns its index for close.
func (o *outline) open(i int) uint32 {
	if o == nil {
		return 0
	}
	o.tokens = append(o.tokens, token{from: uint32(i)})
	return uint32(len(o.tokens) - 1)
}

// close adds the delimiter that closes what the token opened opens.
func (o *outline) close(i int, opened uint32) {
	if o != nil {
		o.tokens[opened].to = uint32(len(o.tokens))
		o.tokens = append(o.tokens, token{uint32(i), uint32(i + 1)})
	}
}

// cursor reads the tokens of a value one by one. What it reads was scanned, so that there is no syntax to check and no
// end to fear.
type cursor struct {
	b      []byte
	tokens []token
	k      int // the token at hand
}

// at returns a cursor at the first token of what o outlines in b.
func (o *outline) at(b []byte) cursor { return cursor{b: b, tokens: o.tokens} }

// kind is the first byte of the value at hand: one of {["-tfn or a digit.
func (c *cursor) kind() byte { return c.b[c.tokens[c.k].start()] }

// behind is the index of the token behind the value at hand.
func (c *cursor) behind() int {
	if t := c.tokens[c.k]; c.b[t.start()] == '{' || c.b[t.start()] == '[' {
		return int(t.to) + 1
	}
	return c.k + 1
}

// skip goes to the token behind the value at hand.
func (c *cursor) skip() { c.k = c.behind() }

// enter goes to the first token inside the array or object at hand, and returns the index of the one that closes it.
func (c *cursor) enter() (end int) {
	end = int(c.tokens[c.k].to)
	c.k++
	return end
}

// count is how many values stand from the token at hand up to end.
func (c *cursor) count(end int) int {
	n := 0
	for at := *c; at.k < end; n++ {
		at.skip()
	}
	return n
}

// raw consumes the value at hand and returns its bytes.
func (c *cursor) raw() []byte {
	from := c.tokens[c.k].start()
	c.skip()
	return c.b[from:int(c.tokens[c.k-1].to)]
}

// content consumes the name or string at hand and returns what it holds. It allocates only for one that has escapes or
// bytes that are not UTF-8, which are replaced as sigs.k8s.io/json does.
func (c *cursor) content() []byte {
	t := c.tokens[c.k]
	c.k++
	content := c.b[t.start()+1 : t.to-1]
	if t.from&odd != 0 && (bytes.IndexByte(content, '\\') >= 0 || !utf8.Valid(content)) {
		return unquote(content)
	}
	return content
}

// stringOf is content of the value at hand, and nil for one that is no string.
func (c *cursor) stringOf() []byte {
	if c.k < len(c.tokens) && c.kind() == '"' {
		return c.content()
	}
	return nil
}

// member goes to the value of the last member of that name, if there is one in what is at hand.
func (c *cursor) member(name string) bool {
	found := 0
	if c.k < len(c.tokens) && c.kind() == '{' {
		for end := c.enter(); c.k < end; c.skip() {
			if string(c.content()) == name {
				found = c.k
			}
		}
	}
	c.k = found
	return found > 0
}

// outlined is a cursor at the value of JSON in b.
func outlined(b []byte) (cursor, error) {
	s := newScanner(&window{buf: b, hi: len(b), limit: len(b)})
	s.held = true
	var o outline
	_, err := s.value(0, &o)
	return o.at(b), err
}

// head is where, in an object, the members stand that are read before the rest: indices of tokens, 0 for what is not
// there. The last of members of one name counts, and repeated says that there was another.
type head struct {
	apiVersion, kind, metadata int
	repeated                   bool
}

func (o *outline) head(b []byte) head {
	var h head
	c := o.at(b)
	if len(c.tokens) == 0 || c.kind() != '{' {
		return h
	}
	for end := c.enter(); c.k < end; c.skip() {
		var at *int
		switch string(c.content()) {
		case "metadata":
			at = &h.metadata
		case "kind":
			at = &h.kind
		case "apiVersion":
			at = &h.apiVersion
		default:
			continue
		}
		h.repeated = h.repeated || *at > 0
		*at = c.k
	}
	return h
}

// stringAt is the string that the token k is, and nil where it is none.
func (o *outline) stringAt(b []byte, k int) []byte {
	if k == 0 {
		return nil
	}
	c := cursor{b: b, tokens: o.tokens, k: k}
	return c.stringOf()
}

// text is the content of a string of JSON. It allocates only where cursor.content does.
func text(quoted []byte) []byte {
	content := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(content, '\\') >= 0 || !utf8.Valid(content) {
		return unquote(content)
	}
	return content
}

// textOf is text of a value, and nil of one that is not a string.
func textOf(value []byte) []byte {
	if len(value) == 0 || value[0] != '"' {
		return nil
	}
	return text(value)
}

// unquote replaces the escapes in the content of a string, and each byte that is not UTF-8 by U+FFFD.
func unquote(content []byte) []byte {
	out := make([]byte, 0, len(content)+8)
	for i := 0; i < len(content); {
		c := content[i]
		switch {
		case c == '\\' && content[i+1] == 'u':
			r := hexadecimal(content[i+2:])
			i += 6
			if isSurrogate(r) {
				r, i = pair(r, content, i)
			}
			out = utf8.AppendRune(out, r)
		case c == '\\':
			out = append(out, escaped(content[i+1]))
			i += 2
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(content[i:])
			out = utf8.AppendRune(out, r)
			i += n
		}
	}
	return slices.Clip(out)
}

func escaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	default:
		return c // a quote, a backslash or a slash
	}
}

// hexadecimal is the value of the four digits that b begins with.
func hexadecimal(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		if isDigit(c) {
			r = r<<4 | rune(c-'0')
		} else {
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}

func isSurrogate(r rune) bool { return 0xD800 <= r && r < 0xE000 }

// pair is the character that the surrogate high and the one that may be escaped at i make together, and where what
// follows begins. A surrogate that stands alone is replaced.
func pair(high rune, content []byte, i int) (rune, int) {
	if high < 0xDC00 && i+6 <= len(content) && content[i] == '\\' && content[i+1] == 'u' {
		if low := hexadecimal(content[i+2:]); 0xDC00 <= low && low < 0xE000 {
			return (high-0xD800)<<10 | (low - 0xDC00) + 0x10000, i + 6
		}
	}
	return utf8.RuneError, i
}
