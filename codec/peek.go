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
	// managed is where the member managedFields stands in the metadata, and again says that there is another.
	managed span
	again   bool
}

func (id identity) key() api.Key {
	return api.Key{Namespace: string(id.namespace), Name: string(id.name)}
}

// identify reads the metadata of the object in b without decoding the rest. What has the wrong type counts as absent.
func identify(b []byte, o *outline) identity {
	id := identity{certain: !o.repeated}
	metadata := o.metadata.in(b)
	var seen [4]bool
	for name, value := range members(metadata) {
		var to *[]byte
		var k int
		switch string(text(name.in(metadata))) {
		case "namespace":
			to, k = &id.namespace, 0
		case "name":
			to, k = &id.name, 1
		case "uid":
			to, k = &id.uid, 2
		case "resourceVersion":
			to, k = &id.version, 3
		case "managedFields":
			id.again = id.managed.to > 0
			id.managed = span{name.from, value.to}
			continue
		default:
			continue
		}
		*to = textOf(value.in(metadata))
		id.certain = id.certain && !seen[k]
		seen[k] = true
	}
	return id
}

// members iterates over the members of the object in b, which the scanner has passed, as spans of b: each name in its
// quotes, and each value. It yields nothing if b is not an object.
func members(b []byte) iter.Seq2[span, span] {
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

// withoutManagedFields cuts metadata.managedFields, of which id says where it stands, out of the object in b, in place,
// and returns what is left, which is another part of b. Of o only the metadata is good afterwards, of id nothing.
func withoutManagedFields(b []byte, o *outline, id identity) []byte {
	for id.managed.to > 0 {
		cut := withComma(o.metadata.in(b), id.managed)
		// What stands before is shorter than what stands behind, so it is what moves.
		from, n := o.metadata.from+cut.from, cut.to-cut.from
		copy(b[n:], b[:from])
		b = b[n:]
		o.metadata.to -= n
		if !id.again {
			break
		}
		id = identify(b, o)
	}
	return b
}

// withComma is the member together with the comma that goes when it goes.
func withComma(b []byte, member span) span {
	if i := skipSpace(b, member.to); b[i] == ',' {
		return span{member.from, i + 1}
	}
	for i := member.from - 1; i >= 0 && (b[i] <= ' ' || b[i] == ','); i-- {
		if b[i] == ',' {
			return span{i, member.to}
		}
	}
	return member
}
