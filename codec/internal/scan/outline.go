package scan

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"
)

// Span is a range of the bytes of a value. The zero Span is empty.
type Span struct{ From, To int }

// In returns the span of b.
func (p Span) In(b []byte) []byte { return b[p.From:p.To] }

// Token is the position of a name, a string, a number, a literal, or a delimiter of an array or object.
type Token struct {
	// From is where the token begins. The bit Odd marks a string with escapes or with bytes beyond ASCII, whose content
	// may differ from its bytes.
	From uint32
	// To is where the token ends. For an opening delimiter, it is the index of the token that closes the array or
	// object.
	To uint32
}

const (
	Odd = 1 << 31 // of Token.From

	// MaxNoted is the largest position of a token.
	MaxNoted = Odd - 1
	// firstTokens is the initial capacity. It suffices for a small object or a bookmark: most watches are silent.
	firstTokens = 1 << 7
	// keptTokens is the largest capacity that an empty outline keeps.
	keptTokens = 64 << 10
	// bytesPerToken is the smallest number of bytes per token in a large object. Without this limit, an object that
	// consists of brackets would cost a multiple of MaxObjectBytes. Real objects have about nine bytes per token. An
	// object of three megabytes, the limit of kube-apiserver, passes with any content.
	bytesPerToken = 4
)

// Start returns where the token begins.
func (t Token) Start() int { return int(t.From &^ Odd) }

// Outline is the list of a value's tokens: the position of each token, and the end of each array and object. The
// scanner makes it on the way. So decoding need not search again, and skipping is one step. Positions count from the
// same place as the scanner's. A token takes eight bytes.
type Outline struct{ Tokens []Token }

// Reset prepares the outline for another value.
func (o *Outline) Reset() {
	if cap(o.Tokens) > keptTokens || o.Tokens == nil {
		o.Tokens = make([]Token, 0, firstTokens)
	}
	o.Tokens = o.Tokens[:0]
}

// count returns the number of tokens.
func (o *Outline) count() int {
	if o == nil {
		return 0
	}
	return len(o.Tokens)
}

// maxTokens returns how many tokens an object of limit bytes may have.
func maxTokens(limit int) int { return max(limit/bytesPerToken, keptTokens) }

// note adds a token that is not a delimiter. A nil outline records nothing.
func (o *Outline) note(from, to int, flag uint32) {
	if o != nil {
		o.Tokens = append(o.Tokens, Token{uint32(from) | flag, uint32(to)})
	}
}

// open adds an opening delimiter, and returns its index for close.
func (o *Outline) open(i int) uint32 {
	if o == nil {
		return 0
	}
	o.Tokens = append(o.Tokens, Token{From: uint32(i)})
	return uint32(len(o.Tokens) - 1)
}

// close adds the delimiter that closes the token opened.
func (o *Outline) close(i int, opened uint32) {
	if o != nil {
		o.Tokens[opened].To = uint32(len(o.Tokens))
		o.Tokens = append(o.Tokens, Token{uint32(i), uint32(i + 1)})
	}
}

// Cursor reads the tokens of a value one by one. The scanner has checked the value, so the cursor need not check syntax
// or bounds.
type Cursor struct {
	B      []byte
	Tokens []Token
	K      int // index of the current token
}

// At returns a Cursor at the first token of the outline of b.
func (o *Outline) At(b []byte) Cursor { return Cursor{B: b, Tokens: o.Tokens} }

// Kind returns the first byte of the current value: one of {["-tfn or a digit.
func (c *Cursor) Kind() byte { return c.B[c.Tokens[c.K].Start()] }

// Behind returns the index of the token after the current value.
func (c *Cursor) Behind() int {
	if t := c.Tokens[c.K]; c.B[t.Start()] == '{' || c.B[t.Start()] == '[' {
		return int(t.To) + 1
	}
	return c.K + 1
}

// Skip moves to the token after the current value.
func (c *Cursor) Skip() { c.K = c.Behind() }

// Enter moves to the first token inside the current array or object, and returns the index of its closing token.
func (c *Cursor) Enter() (end int) {
	end = int(c.Tokens[c.K].To)
	c.K++
	return end
}

// Count returns the number of values from the current token up to end.
func (c *Cursor) Count(end int) int {
	n := 0
	for at := *c; at.K < end; n++ {
		at.Skip()
	}
	return n
}

// Raw returns the bytes of the current value and moves behind it.
func (c *Cursor) Raw() []byte {
	from := c.Tokens[c.K].Start()
	c.Skip()
	return c.B[from:int(c.Tokens[c.K-1].To)]
}

// Content returns the content of the current name or string and moves behind it. It allocates only if the string has
// escapes or bytes that are not UTF-8, which it replaces as sigs.k8s.io/json does.
func (c *Cursor) Content() []byte {
	t := c.Tokens[c.K]
	c.K++
	content := c.B[t.Start()+1 : t.To-1]
	if t.From&Odd != 0 && (bytes.IndexByte(content, '\\') >= 0 || !utf8.Valid(content)) {
		return unquote(content)
	}
	return content
}

// StringOf returns the content of the current value if it is a string, otherwise nil.
func (c *Cursor) StringOf() []byte {
	if c.K < len(c.Tokens) && c.Kind() == '"' {
		return c.Content()
	}
	return nil
}

// Member moves to the value of the last member with that name, and reports whether the current object has one.
func (c *Cursor) Member(name string) bool {
	found := 0
	if c.K < len(c.Tokens) && c.Kind() == '{' {
		for end := c.Enter(); c.K < end; c.Skip() {
			if string(c.Content()) == name {
				found = c.K
			}
		}
	}
	c.K = found
	return found > 0
}

// Scan records the tokens of the JSON value in b.
func (o *Outline) Scan(b []byte) error {
	s := NewScanner(nil, &Window{buf: b, hi: len(b), limit: len(b)})
	s.Held = true
	o.Reset()
	_, err := s.Value(0, o)
	return err
}

// Rescan is Scan for a value whose parts were scanned with a limit before. It has no limit of tokens, because what is
// left of a value can have more tokens for its length than the value. It is a function of its own because an agent
// without masks does not link it.
func Rescan(o *Outline, b []byte) error {
	s := NewScanner(nil, &Window{buf: b, hi: len(b), limit: MaxNoted, err: io.ErrUnexpectedEOF})
	s.Held = true
	o.Reset()
	_, err := s.Value(0, o)
	return err
}

// StringAt returns the content of token k if it is a string, otherwise nil.
func (o *Outline) StringAt(b []byte, k int) []byte {
	if k == 0 {
		return nil
	}
	c := Cursor{B: b, Tokens: o.Tokens, K: k}
	return c.StringOf()
}

// Text returns the content of a JSON string. It allocates only when Cursor.Content does.
func Text(quoted []byte) []byte {
	content := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(content, '\\') >= 0 || !utf8.Valid(content) {
		return unquote(content)
	}
	return content
}

// TextOf returns the content of a value if it is a string, otherwise nil.
func TextOf(value []byte) []byte {
	if len(value) == 0 || value[0] != '"' {
		return nil
	}
	return Text(value)
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
		if IsDigit(c) {
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
