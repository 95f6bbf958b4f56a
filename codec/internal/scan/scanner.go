package scan

import (
	"encoding/binary"
	"io"
	"math/bits"

	"github.com/leatproject/leat/codec/internal/plan"
)

// Scanner finds the ends of JSON values in a stream and checks the syntax of every byte, also in skipped values. Later
// steps can rely on valid JSON. Positions count from the start of the window. While Held is false, the scanner drops
// the bytes that it has passed, and positions start again from 0 with each refill.
type Scanner struct {
	w     *Window
	B     []byte // the bytes of the window
	Held  bool
	stack []nesting
	odd   uint32 // the flag of the string that str read last
	label []byte // the last name that memberName read

	breaks Breaks
}

// nesting is an array or object that the scanner has entered.
type nesting struct {
	closing byte   // the expected closing delimiter
	opened  uint32 // the result of Outline.open
}

// NewScanner returns a scanner of the stream in a window. It calls ended while it scans a large value, unless ended is
// nil, and stops with the error that ended returns.
func NewScanner(ended func() error, w *Window) *Scanner {
	return &Scanner{w: w, B: w.Bytes(), breaks: NewBreaks(ended)}
}

// expectation is what may come next inside a value.
type expectation uint8

const (
	aValue expectation = 1 << iota
	aName
	aComma
	theEnd // of the array or object
)

func (e expectation) String() string {
	switch {
	case e&aValue != 0:
		return "a value"
	case e&aName != 0:
		return "a member's name"
	default:
		return "a comma or the end of an array or object"
	}
}

// Value scans the value that starts at or after i, adds its tokens to o unless o is nil, and returns its end. Token
// positions count from the same place as i, so they need Held.
func (s *Scanner) Value(i int, o *Outline) (int, error) {
	s.stack = s.stack[:0]
	s.breaks.Begin()
	want := aValue
	for {
		var err error
		if i >= len(s.B) || s.B[i] <= ' ' {
			if i, err = s.Next(i); err != nil {
				return i, err
			}
		}
		from := i
		switch c := s.B[i]; {
		case c == '"' && want&aName != 0:
			if i, err = s.str(i); err == nil {
				o.note(from, i, s.odd)
				i, err = s.colon(i)
			}
			want = aValue
		case c == '"' && want&aValue != 0:
			if i, err = s.str(i); err == nil {
				o.note(from, i, s.odd)
			}
			want = aComma | theEnd
		case c == ',' && want&aComma != 0:
			if o.count() >= s.breaks.next {
				if err = s.pause(o); err != nil {
					return i, err
				}
			}
			i++
			want = s.another()
		case (c == '{' || c == '[') && want&aValue != 0:
			i, want, err = s.push(i, o)
		case (c == '}' || c == ']') && want&theEnd != 0 && c == s.stack[len(s.stack)-1].closing:
			i++
			o.close(from, s.stack[len(s.stack)-1].opened)
			s.stack = s.stack[:len(s.stack)-1]
			want = aComma | theEnd
		case want&aValue != 0:
			if i, err = s.Scalar(i); err == nil {
				o.note(from, i, 0)
			}
			want = aComma | theEnd
		default:
			err = s.Invalid(i, want.String())
		}
		if err != nil || len(s.stack) == 0 && want&aComma != 0 {
			return i, err
		}
	}
}

// pause returns an error for a value with too many tokens, or if the context has ended. It is called at commas, because
// few tokens fit between two commas.
func (s *Scanner) pause(o *Outline) error {
	most := maxTokens(s.w.limit)
	if o.count() > most {
		return &TooLarge{Limit: s.w.limit}
	}
	err := s.breaks.look(o.count())
	s.breaks.next = min(s.breaks.next, most+1)
	return err
}

// push enters the array or object that starts at i.
func (s *Scanner) push(i int, o *Outline) (int, expectation, error) {
	if len(s.stack) == plan.MaxDepth {
		return i, 0, malformed(s.w.off+int64(i), "nested deeper than %d levels", plan.MaxDepth)
	}
	if s.B[i] == '{' {
		s.stack = append(s.stack, nesting{'}', o.open(i)})
		return i + 1, aName | theEnd, nil
	}
	s.stack = append(s.stack, nesting{']', o.open(i)})
	return i + 1, aValue | theEnd, nil
}

// another returns what must follow a comma.
func (s *Scanner) another() expectation {
	if s.stack[len(s.stack)-1].closing == '}' {
		return aName
	}
	return aValue
}

// colon reads the colon after a name.
func (s *Scanner) colon(i int) (int, error) {
	if i < len(s.B) && s.B[i] == ':' {
		return i + 1, nil
	}
	return s.expect(i, ':', "a colon")
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str reads the string whose opening quote is at i. Bytes that are not UTF-8 are allowed; decoding replaces them, as
// sigs.k8s.io/json does. str sets odd if the string may contain such a byte, or an escape.
func (s *Scanner) str(i int) (int, error) {
	i++
	s.odd = 0
	var seen uint64 // all bytes so far, combined with OR
	for {
		b := s.B
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^(ones*'"'), x^(ones*'\\')
			// The lowest set bit marks the first quote, backslash or control character, because borrows spread only
			// upwards.
			if m := ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x) & highs; m != 0 {
				seen |= x
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			seen |= x
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
			seen |= uint64(b[i])
			i++
		}
		var err error
		switch {
		case i == len(b):
			i, err = s.fill(i)
		case b[i] == '"':
			if seen&highs != 0 {
				s.odd = Odd
			}
			return i + 1, nil
		case b[i] == '\\':
			s.odd = Odd
			i, err = s.escape(i)
		default:
			err = s.Invalid(i, "a character of a string")
		}
		if err != nil {
			return i, err
		}
	}
}

// escape reads the escape sequence whose backslash is at i.
func (s *Scanner) escape(i int) (int, error) {
	i, err := s.have(i, 2)
	if err != nil {
		return i, err
	}
	switch s.B[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
	default:
		return i, s.Invalid(i+1, "an escape")
	}
	if i, err = s.have(i, 6); err != nil {
		return i, err
	}
	for k := i + 2; k < i+6; k++ {
		if c := s.B[k] | 0x20; !IsDigit(s.B[k]) && (c < 'a' || c > 'f') {
			return i, s.Invalid(k, "a hexadecimal digit")
		}
	}
	return i + 6, nil
}

// have makes sure that n bytes are available at i.
func (s *Scanner) have(i, n int) (int, error) {
	var err error
	for i+n > len(s.B) && err == nil {
		i, err = s.fill(i)
	}
	return i, err
}

// Scalar reads a number, true, false or null. It never ends an answer, so another byte must follow.
func (s *Scanner) Scalar(i int) (int, error) {
	if s.Held {
		return s.literal(i)
	}
	i = s.Hold(i)
	end, err := s.literal(i)
	s.Release()
	return end, err
}

// literal is Scalar while Held is set.
func (s *Scanner) literal(i int) (int, error) {
	end := i
	for {
		for end < len(s.B) && !delimits(s.B[end]) {
			end++
		}
		if end < len(s.B) {
			break
		}
		var err error
		if end, err = s.fill(end); err != nil {
			return end, err
		}
	}
	token := s.B[i:end]
	if string(token) != "null" && string(token) != "true" && string(token) != "false" && !IsNumber(token) {
		return i, s.Invalid(i, "a value")
	}
	return end, nil
}

func delimits(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c == ':' || c == '"' || c <= ' '
}

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsNumber reports whether b is a number of RFC 8259.
func IsNumber(b []byte) bool {
	if len(b) > 0 && b[0] == '-' {
		b = b[1:]
	}
	switch {
	case len(b) > 0 && b[0] == '0':
		b = b[1:]
	case len(b) > 0 && IsDigit(b[0]):
		b = digits(b)
	default:
		return false
	}
	if len(b) > 1 && b[0] == '.' && IsDigit(b[1]) {
		b = digits(b[1:])
	}
	if len(b) > 1 && b[0]|0x20 == 'e' {
		b = b[1:]
		if len(b) > 1 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if !IsDigit(b[0]) {
			return false
		}
		b = digits(b)
	}
	return len(b) == 0
}

func digits(b []byte) []byte {
	for len(b) > 0 && IsDigit(b[0]) {
		b = b[1:]
	}
	return b
}

// Next skips white space and returns the position of the next byte. If the answer ends there, it is truncated.
func (s *Scanner) Next(i int) (int, error) {
	i, err := s.Space(i)
	if err == io.EOF {
		err = truncated(s.w.off + int64(i))
	}
	return i, err
}

// Space is Next at a place where an answer may end; there it returns io.EOF. The limit of an object also applies to
// white space, because the answer may consist of nothing else.
func (s *Scanner) Space(i int) (int, error) {
	var from int64
	for waiting := false; ; waiting = true {
		for ; i < len(s.B); i++ {
			if c := s.B[i]; c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				return i, nil
			}
		}
		if at := s.w.off + int64(i); !waiting {
			from = at
		} else if at-from > int64(s.w.limit) {
			return i, &TooLarge{Limit: s.w.limit}
		}
		var err error
		if i, err = s.refill(i); err != nil {
			return i, err
		}
	}
}

// End checks that only white space is left, and reads it.
func (s *Scanner) End(i int) error {
	s.Held = false
	i, err := s.Space(i)
	switch err {
	case nil:
		return s.Invalid(i, "the end")
	case io.EOF:
		return nil
	default:
		return err
	}
}

// expect reads white space and one given byte.
func (s *Scanner) expect(i int, c byte, want string) (int, error) {
	i, err := s.Next(i)
	if err != nil {
		return i, err
	}
	if s.B[i] != c {
		return i, s.Invalid(i, want)
	}
	return i + 1, nil
}

// refill reads more bytes and returns the new position of i. It returns io.EOF unchanged.
func (s *Scanner) refill(i int) (int, error) {
	if !s.Held {
		s.Drop(i)
		i = 0
	}
	err := s.w.More()
	s.B = s.w.Bytes()
	return i, err
}

// fill is refill inside a value.
func (s *Scanner) fill(i int) (int, error) {
	i, err := s.refill(i)
	if err == io.EOF {
		err = truncated(s.w.off + int64(i))
	}
	return i, err
}

// Drop drops everything before i.
func (s *Scanner) Drop(i int) {
	s.w.Drop(i)
	s.B = s.w.Bytes()
}

// Invalid returns the error of a byte at i where something else should be.
func (s *Scanner) Invalid(i int, want string) error {
	return malformed(s.w.off+int64(i), "%q where %s should be", s.B[i], want)
}

// Object calls member for each member of the object that starts at or after i. member gets the name, which is valid
// during the call, and the position where the value, or white space before it, begins. It returns the end of the value,
// and leaves Held as it was.
func (s *Scanner) Object(i int, member func(name []byte, i int) (int, error)) (int, error) {
	i, err := s.expect(i, '{', "an object")
	if err != nil {
		return i, err
	}
	return s.elements(i, '}', func(i int) (int, error) {
		i, err := s.memberName(i)
		if err != nil {
			return i, err
		}
		return member(s.label, i)
	})
}

// memberName reads a name, stores it in label, and reads the colon after it.
func (s *Scanner) memberName(i int) (int, error) {
	i, err := s.Next(i)
	if err != nil {
		return i, err
	}
	if s.B[i] != '"' {
		return i, s.Invalid(i, "a member's name")
	}
	held := s.Held
	if !held {
		i = s.Hold(i)
	}
	end, err := s.str(i)
	if err == nil {
		s.label = append(s.label[:0], Text(s.B[i:end])...)
		end, err = s.expect(end, ':', "a colon")
	}
	s.Held = held
	return end, err
}

// Hold keeps everything from i on in the window, until Release. It returns the new position of i.
func (s *Scanner) Hold(i int) int {
	s.Drop(i)
	s.Held = true
	return 0
}

// Release ends what Hold began.
func (s *Scanner) Release() { s.Held = false }

// Array calls element for each element of the array that starts at or after i, with its position. element returns the
// end of the element, and leaves Held as it was.
func (s *Scanner) Array(i int, element func(i int) (int, error)) (int, error) {
	i, err := s.expect(i, '[', "an array")
	if err != nil {
		return i, err
	}
	return s.elements(i, ']', element)
}

// elements calls element for each part between commas, up to the closing delimiter.
func (s *Scanner) elements(i int, closing byte, element func(i int) (int, error)) (int, error) {
	i, err := s.Next(i)
	if err != nil {
		return i, err
	}
	if s.B[i] == closing {
		return i + 1, nil
	}
	for {
		if i, err = element(i); err != nil {
			return i, err
		}
		if i, err = s.Next(i); err != nil {
			return i, err
		}
		switch s.B[i] {
		case closing:
			return i + 1, nil
		case ',':
			i++
		default:
			return i, s.Invalid(i, "a comma or the end of an object or array")
		}
	}
}
