package scan

import (
	"bytes"
	"iter"
)

// Members iterates over the members of the object in b, which the scanner has checked. It yields each name, in its
// quotes, and each value as spans of b. If b is not an object, it yields nothing.
func Members(b []byte) iter.Seq2[Span, Span] {
	return func(yield func(name, value Span) bool) {
		i := skipSpace(b, 0)
		if i == len(b) || b[i] != '{' {
			return
		}
		for i = skipSpace(b, i+1); b[i] != '}'; i = skipSpace(b, i) {
			if b[i] == ',' {
				i = skipSpace(b, i+1)
			}
			name := Span{i, skipString(b, i)}
			i = skipSpace(b, skipSpace(b, name.To)+1)
			value := Span{i, skipValue(b, i)}
			if !yield(name, value) {
				return
			}
			i = value.To
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// skipString returns the end of the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		k := i
		for b[k-1] == '\\' {
			k--
		}
		if (i-k)%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the end of the value that starts at i.
func skipValue(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			i++
			continue
		default:
			for i < len(b) && !delimits(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}
