package codec

import (
	"bytes"
	"iter"

	"github.com/leatproject/leat/api"
)

// identity is what is read of an object before the rest of it: the bytes alias the answer.
type identity struct {
	namespace, name, uid, version []byte
	// certain says that a decoder would read the very same; it is false where names are repeated.
	certain bool
}

func (id identity) key() api.Key {
	return api.Key{Namespace: string(id.namespace), Name: string(id.name)}
}

// identify reads the metadata of the object in b without decoding the rest. What has the wrong type counts as absent.
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

// membersOf iterates over the members of the object in b, which the scanner has passed, as spans of b: each name in its
// quotes, and each value. It yields nothing if b is not an object.
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

// skipString returns where the string that starts at i ends.
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

// skipValue returns where the value that starts at i ends.
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

// withoutManagedFields copies the object at hand without the managedFields of its metadata, for a decoder that cannot
// step over them.
func withoutManagedFields(c cursor) cursor {
	w := pruner{cursor: c}
	w.object(inObject)
	pruned, _ := outlined(w.out) // it was scanned before
	return pruned
}

// pruner writes an object anew.
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
