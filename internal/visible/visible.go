package visible

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with an escape for each character that a terminal might not print as it is, as in a string of JSON:
// "\u001b", and "\n" for a line break. A byte that is not UTF-8 becomes "\xff". A backslash stays, because messages
// contain paths and patterns; so the escape of a character and the same text look alike.
func Text(s string) string { return escape(s, "") }

// Sprintf is fmt.Sprintf with arguments that are printed as [Text] prints them. The format is trusted.
func Sprintf(format string, args ...any) string {
	shown := make([]any, len(args))
	for i, a := range args {
		shown[i] = argument{a}
	}
	return fmt.Sprintf(format, shown...)
}

// Fprintf is fmt.Fprintf with arguments that are printed as [Text] prints them. The format is trusted.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return io.WriteString(w, Sprintf(format, args...))
}

// argument is a value whose text is escaped.
type argument struct{ value any }

// Format escapes a string before it is padded, so that columns stay in line. The verb q needs the string as it is.
func (a argument) Format(f fmt.State, verb rune) {
	value := a.value
	if s, ok := value.(string); ok && verb != 'q' {
		value = Text(s)
	}
	_, _ = io.WriteString(f, Text(fmt.Sprintf(fmt.FormatString(f, verb), value))) // a state keeps the error
}

// Writer returns a writer that escapes what it writes to w, except for line breaks and tabs. It is for text whose
// arguments are not escaped yet, and has no effect on others. A character must come in one Write.
func Writer(w io.Writer) io.Writer { return &writer{w} }

type writer struct{ w io.Writer }

func (w *writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, escape(string(p), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// short are the escapes of JSON that have a name.
var short = map[rune]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// escape escapes the characters that are not graphic, except for those in layout.
func escape(s, layout string) string {
	plain := func(r rune, size int) bool {
		return ' ' <= r && r <= '~' || (unicode.IsGraphic(r) || strings.ContainsRune(layout, r)) && (r != utf8.RuneError || size > 1)
	}
	var b strings.Builder
	done := 0 // the bytes of s that are in b
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		if r, size = utf8.DecodeRuneInString(s[i:]); plain(r, size) {
			continue
		}
		b.WriteString(s[done:i])
		done = i + size
		switch high, low := utf16.EncodeRune(r); {
		case size == 1 && r == utf8.RuneError:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case short[r] != "":
			b.WriteString(short[r])
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}
