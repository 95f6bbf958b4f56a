package codec

import (
	"bytes"
	"iter"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/quote"
)

// identity is the part of an object that is read before the rest. The bytes alias the answer.
type identity struct {
	namespace, name, uid, version []byte
	// certain means that a decoder would read the same values. It is false if names are repeated.
	certain bool
}

// maxIdentity limits each value of the metadata in an error, in bytes. The longest name has 253.
const maxIdentity = 256

func (id identity) key() api.Key {
	return api.Key{Namespace: kept(id.namespace), Name: kept(id.name)}
}

// kept returns the beginning of a value, for an error that outlives the answer.
func kept(value []byte) string {
	return quote.Short(string(value[:min(len(value), maxIdentity+1)]), maxIdentity)
}

// identify reads the metadata of the object in b without decoding the rest. It ignores values of the wrong type.
func identify(b []byte, o *outline, h head) identity {
	id := identity{certain: !h.repeated}
	c := cursor{b: b, tokens: o.tokens, k: h.metadata}
	if h.metadata == 0 || c.kind() != '{' {
		return id
	}
	var seen [4]bool
	for end := c.enter(); c.k < end; {
		var to *[]byte
		var k int
		switch string(c.content()) {
		case "namespace":
			to, k = &id.namespace, 0
		case "name":
			to, k = &id.name, 1
		case "uid":
			to, k = &id.uid, 2
		case "resourceVersion":
			to, k = &id.version, 3
		default:
			c.skip()
			continue
		}
		next := c.behind()
		*to = c.stringOf()
		c.k = next
		id.certain = id.certain && !seen[k]
		seen[k] = true
	}
	return id
}

// membersOf iterates over the members of the object in b, which the scanner has checked. It yields each name, in its
// quotes, and each value as spans of b. If b is not an object, it yields nothing.
func membersOf(b []byte) iter.Seq2[span, span] {
	return func(yield func(name, value span) bool) {
		i := skipSpace(b, 0)
		if i == len(b) || b[i] != '{' {
			return
		}
		for i = skipSpace(b, i+1); b[i] != '}'; i = skipSpace(b, i) {
			if b[i] == ',' {
				i = skipSpace(b, i+1)
			}
			name := span{i, skipString(b, i)}
			i = skipSpace(b, skipSpace(b, name.to)+1)
			value := span{i, skipValue(b, i)}
			if !yield(name, value) {
				return
			}
			i = value.to
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

// withoutManagedFields copies the current object without the managedFields of its metadata, for a decoder that cannot
// skip them.
func withoutManagedFields(c cursor) cursor {
	w := pruner{cursor: c}
	w.object(inObject)
	pruned, _ := outlined(w.out) // it was scanned before
	return pruned
}

// pruner writes a copy of an object.
type pruner struct {
	cursor
	out []byte
}

func (w *pruner) object(where int) {
	w.out = append(w.out, '{')
	first := true
	for end := w.enter(); w.k < end; {
		quoted := w.tokens[w.k]
		name := string(w.content())
		if where == inMetadata && name == "managedFields" {
			w.skip()
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = append(append(w.out, w.b[quoted.start():quoted.to]...), ':')
		if where == inObject && name == "metadata" && w.kind() == '{' {
			w.object(inMetadata)
		} else {
			w.out = append(w.out, w.raw()...)
		}
	}
	w.k++
	w.out = append(w.out, '}')
}
