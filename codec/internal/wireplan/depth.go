package wireplan

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leatproject/leat/codec/internal/plan"
)

// nestsTooDeep reports whether the message in b may nest deeper than plan.MaxDepth. It treats a string that looks like
// a message as one; no real string looks like ten thousand nested messages.
func nestsTooDeep(b []byte) bool {
	pending := []nested{{b: b, depth: 1}}
	for len(pending) > 0 {
		next := &pending[len(pending)-1]
		num, typ, n := protowire.ConsumeTag(next.b)
		if n < 0 || num < 1 {
			pending = pending[:len(pending)-1]
			continue
		}
		size := protowire.ConsumeFieldValue(num, typ, next.b[n:])
		if size < 0 {
			pending = pending[:len(pending)-1]
			continue
		}
		value := next.b[n : n+size]
		next.b = next.b[n+size:]
		if typ == protowire.BytesType {
			if next.depth >= plan.MaxDepth {
				return true
			}
			content, _ := protowire.ConsumeBytes(value)
			pending = append(pending, nested{b: content, depth: next.depth + 1})
		}
	}
	return false
}

// nested is the unread part of a message.
type nested struct {
	b     []byte
	depth int
}
