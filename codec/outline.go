package codec

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// span is a range of the bytes of a value. The zero span is empty.
type span struct{ from, to int }

func (p span) in(b []byte) []byte { return b[p.from:p.to] }

// token is the position of a name, a string, a number, a literal, or a delimiter of an array or object.
type token struct {
	// from is where the token begins. The bit odd marks a string with escapes or with bytes beyond ASCII, whose content
	// may differ from its bytes.
	from uint32
	// to is where the token ends. For an opening delimiter, it is the index of the token that closes the array or
	// object.
	to uint32
}

const (
	odd = 1 << 31 // of token.from

	// maxNoted is the largest position of a token.
	maxNoted = odd - 1
	// firstTokens is the initial capacity; it suffices for a typical object.
	firstTokens = 1 << 10
	// keptTokens is the largest capacity that an empty outline keeps.
	keptTokens = 64 << 10
	// bytesPerToken is the smallest number of bytes per token in a large object. Without this limit, an object that
	// consists of brackets would cost a multiple of MaxObjectBytes. Real objects have about nine bytes per token. An
	// object of three megabytes, the limit of kube-apiserver, passes with any content.
	bytesPerToken = 4
)

func (t token) start() int { return int(t.from &^ odd) }

// outline is the list of a value's tokens: the position of each token, and the end of each array and object. The
// scanner makes it on the way. So decoding need not search again, and skipping is one step. Positions count from the
// same place as the scanner's. A token takes eight bytes.
type outline struct{ tokens []token }

// reset prepares the outline for another value.
func (o *outline) reset() {
	if cap(o.tokens) > keptTokens || o.tokens == nil {
		o.tokens = make([]token, 0, firstTokens)
	}
	o.tokens = o.tokens[:0]
}

// count returns the number of tokens.
func (o *outline) count() int {
	if o == nil {
		return 0
	}
	return len(o.tokens)
}

// maxTokens returns how many tokens an object of limit bytes may have.
func maxTokens(limit int) int { return max(limit/bytesPerToken, keptTokens) }

// note adds a token that is not a delimiter. A nil outline records nothing.
func (o *outline) note(from, to int, flag uint32) {
	if o != nil {
		o.tokens = append(o.tokens, token{uint32(from) | flag, uint32(to)})
	}
}

// open adds an opening delimiter, and returns its index for close.
func (o *outline) open(i int) uint32 {
	if o == nil {
		return 0
	}
	o.tokens = append(o.tokens, token{from: uint32(i)})
	return uint32(len(o.tokens) - 1)
}

// close adds the delimiter that closes the token opened.
func (o *outline) close(i int, opened uint32) {
	if o != nil {
		o.tokens[opened].to = uint32(len(o.tokens))
		o.tokens = append(o.tokens, token{uint32(i), uint32(i + 1)})
	}
}

// cursor reads the tokens of a value one by one. The scanner has checked the value, so the cursor need not check syntax
// or bounds.
type cursor struct {
	b      []byte
	tokens []token
	k      int // index of the current token
}

// at returns a cursor at the first token of the outline of b.
func (o *outline) at(b []byte) cursor { return cursor{b: b, tokens: o.tokens} }

// kind returns the first byte of the current value: one of {["-tfn or a digit.
func (c *cursor) kind() byte { return c.b[c.tokens[c.k].start()] }

// behind returns the index of the token after the current value.
func (c *cursor) behind() int {
	if t := c.tokens[c.k]; c.b[t.start()] == '{' || c.b[t.start()] == '[' {
		return int(t.to) + 1
	}
	return c.k + 1
}

// skip moves to the token after the current value.
func (c *cursor) skip() { c.k = c.behind() }

// enter moves to the first token inside the current array or object, and returns the index of its closing token.
func (c *cursor) enter() (end int) {
	end = int(c.tokens[c.k].to)
	c.k++
	return end
}

// count returns the number of values from the current token up to end.
func (c *cursor) count(end int) int {
	n := 0
	for at := *c; at.k < end; n++ {
		at.skip()
	}
	return n
}

// raw returns the bytes of the current value and moves behind it.
func (c *cursor) raw() []byte {
	from := c.tokens[c.k].start()
	c.skip()
	return c.b[from:int(c.tokens[c.k-1].to)]
}

// content returns the content of the current name or string and moves behind it. It allocates only if the string has
// escapes or bytes that are not UTF-8, which it replaces as sigs.k8s.io/json does.
func (c *cursor) content() []byte {
	t := c.tokens[c.k]
	c.k++
	content := c.b[t.start()+1 : t.to-1]
	if t.from&odd != 0 && (bytes.IndexByte(content, '\\') >= 0 || !utf8.Valid(content)) {
		return unquote(content)
	}
	return content
}

// stringOf returns the content of the current value if it is a string, otherwise nil.
func (c *cursor) stringOf() []byte {
	if c.k < len(c.tokens) && c.kind() == '"' {
		return c.content()
	}
	return nil
}

// member moves to the value of the last member with that name, and reports whether the current object has one.
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

// outlined returns a cursor at the JSON value in b.
func outlined(b []byte) (cursor, error) {
	s := newScanner(nil, &window{buf: b, hi: len(b), limit: len(b)})
	s.held = true
	var o outline
	_, err := s.value(0, &o)
	return o.at(b), err
}

// stringAt returns the content of token k if it is a string, otherwise nil.
func (o *outline) stringAt(b []byte, k int) []byte {
	if k == 0 {
		return nil
	}
	c := cursor{b: b, tokens: o.tokens, k: k}
	return c.stringOf()
}

// text returns the content of a JSON string. It allocates only when cursor.content does.
func text(quoted []byte) []byte {
	content := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(content, '\\') >= 0 || !utf8.Valid(content) {
		return unquote(content)
	}
	return content
}

// textOf returns the content of a value if it is a string, otherwise nil.
func textOf(value []byte) []byte {
	if len(value) == 0 || value[0] != '"' {
		return nil
	}
	return text(value)
}

// unquote replaces the escapes in the content of a string. It replaces each byte that is not UTF-8 by U+FFFD.
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

// hexadecimal returns the value of the first four digits of b.
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

// pair returns the character of a surrogate pair, whose first half is high and whose second half may be escaped at i.
// It also returns the position after it. A single surrogate is replaced.
func pair(high rune, content []byte, i int) (rune, int) {
	if high < 0xDC00 && i+6 <= len(content) && content[i] == '\\' && content[i+1] == 'u' {
		if low := hexadecimal(content[i+2:]); 0xDC00 <= low && low < 0xE000 {
			return (high-0xD800)<<10 | (low - 0xDC00) + 0x10000, i + 6
		}
	}
	return utf8.RuneError, i
}
