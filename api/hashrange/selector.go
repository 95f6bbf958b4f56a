package hashrange

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth limits parentheses inside each other, and maxLength the code points of a selector. The API server
// has similar limits.
const (
	maxDepth  = 32
	maxLength = 100_000
)

// Selector is a shardSelector (KEP-5866): ranges of the hash of one field, in the order in which they are written.
type Selector struct {
	Field  Field
	Ranges []Range // they may overlap, and are not empty
}

// Set returns the hashes that are selected.
func (s Selector) Set() Set { return NewSet(s.Ranges...) }

// String returns the selector as the API server sends it back in the shardInfo of a list.
func (s Selector) String() string { return Set(s.Ranges).Selector(s.Field) }

// ParseSelector parses a shardSelector: calls of shardRange that are joined with ||. They must have the same field, and
// a start that is less than the end. The syntax is that of CEL, so white space, comments, parentheses and both kinds of
// quotes are allowed. The error says where the text is wrong.
func ParseSelector(text string) (Selector, error) {
	p := parser{text: strings.TrimSpace(text)}
	s, err := p.selector()
	if err != nil {
		return Selector{}, fmt.Errorf("hashrange: at byte %d: %w", min(p.at, len(p.text)), err)
	}
	return s, nil
}

// parser reads a text from left to right.
type parser struct {
	text   string
	at     int
	depth  int // of parentheses
	ranges []Range
	field  Field
}

func (p *parser) selector() (Selector, error) {
	switch {
	case p.text == "":
		return Selector{}, errors.New("the selector is empty")
	case !utf8.ValidString(p.text):
		return Selector{}, errors.New("the selector is not valid UTF-8")
	case utf8.RuneCountInString(p.text) > maxLength:
		return Selector{}, fmt.Errorf("the selector has more than %d characters", maxLength)
	}
	if err := p.alternatives(); err != nil {
		return Selector{}, err
	}
	if p.space(); p.at < len(p.text) {
		return Selector{}, errors.New("expected || or the end")
	}
	return Selector{p.field, p.ranges}, nil
}

// alternatives reads one or more terms that are joined with ||.
func (p *parser) alternatives() error {
	for {
		if err := p.nested(p.alternatives, p.call); err != nil || !p.take("||") {
			return err
		}
	}
}

// nested reads something in parentheses with inner, or something else with outer.
func (p *parser) nested(inner, outer func() error) error {
	if !p.take("(") {
		return outer()
	}
	if p.depth++; p.depth > maxDepth {
		return fmt.Errorf("more than %d parentheses inside each other", maxDepth)
	}
	if err := inner(); err != nil {
		return err
	}
	p.depth--
	return p.expect(")")
}

// call reads a call of shardRange.
func (p *parser) call() error {
	if name := p.word(); name != "shardRange" {
		return errors.New("expected shardRange(field, start, end)")
	}
	if err := p.expect("("); err != nil {
		return err
	}
	if err := p.fieldPath(); err != nil {
		return err
	}
	start, err := p.bound(false)
	if err != nil {
		return err
	}
	end, err := p.bound(true)
	if err != nil {
		return err
	}
	r := Range{start, end}
	if r.Empty() {
		return fmt.Errorf("the range %s has a start that is not less than its end", r)
	}
	p.ranges = append(p.ranges, r)
	return p.expect(")")
}

// fieldPath reads the path of a field, which must be that of the other ranges.
func (p *parser) fieldPath() error {
	path, err := p.path()
	field := Field(path)
	switch {
	case err != nil:
		return err
	case field != UID && field != Namespace:
		return fmt.Errorf("the field is not one of %s and %s", UID, Namespace)
	case p.field != "" && p.field != field:
		return fmt.Errorf("the ranges are of %s and of %s; they must be of one field", p.field, field)
	}
	p.field = field
	return nil
}

// path reads names that are joined with dots.
func (p *parser) path() (path string, err error) {
	err = p.nested(
		func() error { path, err = p.path(); return err },
		func() error { path = p.word(); return nil },
	)
	for err == nil && p.take(".") {
		path += "." + p.word()
	}
	return path, err
}

// bound reads a comma and the start or the end of a range.
func (p *parser) bound(end bool) (uint64, error) {
	if err := p.expect(","); err != nil {
		return 0, err
	}
	text, err := p.parenthesized()
	if err != nil {
		return 0, err
	}
	if text == (Range{}).end() && end {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) != 16 || strings.Trim(digits, "0123456789abcdef") != "" {
		return 0, errors.New("a bound must be '0x' and 16 lowercase hexadecimal digits; the end may also be '" + Range{}.end() + "'")
	}
	hash, err := strconv.ParseUint(digits, 16, 64)
	if err == nil && hash == 0 && end {
		err = errors.New("the end of a range is 0") // no start is less
	}
	return hash, err
}

// parenthesized reads a string literal, which may be in parentheses.
func (p *parser) parenthesized() (text string, err error) {
	read := func(from func() (string, error)) func() error {
		return func() error { text, err = from(); return err }
	}
	return text, p.nested(read(p.parenthesized), read(p.literal))
}

// literal reads a string literal.
func (p *parser) literal() (string, error) {
	p.space()
	raw := p.next() == 'r' || p.next() == 'R'
	if raw {
		p.at++
	}
	quote := string(p.next())
	if quote != "'" && quote != `"` {
		return "", errors.New("expected a string in quotes")
	}
	if strings.HasPrefix(p.text[p.at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	p.at += len(quote)
	var b strings.Builder
	for !strings.HasPrefix(p.text[p.at:], quote) {
		switch c := p.next(); {
		case c == 0 && p.at >= len(p.text), len(quote) == 1 && (c == '\n' || c == '\r'):
			return "", errors.New("a string does not end")
		case c == '\\':
			if raw {
				return "", errors.New("a raw string with a backslash is no bound")
			}
			if err := p.escape(&b); err != nil {
				return "", err
			}
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	p.at += len(quote)
	return b.String(), nil
}

// escape reads an escape sequence of ASCII. A bound has no other characters.
func (p *parser) escape(b *strings.Builder) error {
	digits, base := 0, 16
	p.at++
	switch c := p.next(); c {
	case 'x', 'X':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case '0', '1':
		digits, base = 3, 8
		p.at--
	}
	p.at++
	if digits == 0 || len(p.text)-p.at < digits {
		return errors.New("an escape sequence that is no digit")
	}
	code, err := strconv.ParseUint(p.text[p.at:p.at+digits], base, 32)
	if err != nil || code >= utf8.RuneSelf {
		return errors.New("an escape sequence that is no digit")
	}
	b.WriteByte(byte(code))
	p.at += digits
	return nil
}

// word reads an identifier, which may be empty.
func (p *parser) word() string {
	p.space()
	start := p.at
	for c := p.next(); c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || p.at > start && '0' <= c && c <= '9'; c = p.next() {
		p.at++
	}
	return p.text[start:p.at]
}

// take skips a token if it is next.
func (p *parser) take(token string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *parser) expect(token string) error {
	if !p.take(token) {
		return fmt.Errorf("expected %q", token)
	}
	return nil
}

// space skips white space and comments.
func (p *parser) space() {
	for {
		switch p.next() {
		case ' ', '\t', '\n', '\r', '\f':
			p.at++
			continue
		}
		if !strings.HasPrefix(p.text[p.at:], "//") {
			return
		}
		end := strings.IndexByte(p.text[p.at:], '\n')
		if end < 0 {
			end = len(p.text) - p.at
		}
		p.at += end
	}
}

// next returns the next byte, or 0 at the end.
func (p *parser) next() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}
