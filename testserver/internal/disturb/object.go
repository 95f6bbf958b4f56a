package disturb

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// Items calls put with the items that replace an item of a list: usually the item itself. It returns false if put did.
func (p *Plan) Items(r Target, key api.Key, mediaType string, item []byte, put func([]byte) bool) bool {
	if !p.Busy() {
		return put(item)
	}
	fr := Frame{Kind: faults.Item, Key: key}
	if _, i := OfFrame[faults.Drop](p, r, fr); i != nil {
		i.CountSeen()
		return true
	}
	if mangle, i := p.Malformed(r, fr, mediaType); i != nil {
		i.CountSeen()
		item = mangle(item)
	}
	if _, i := OfFrame[faults.Duplicate](p, r, fr); i != nil {
		i.CountSeen()
		if !put(item) {
			return false
		}
	}
	return put(item)
}

// Malformed returns what a Malform fault does to an object in a media type. The injection is nil if there is no such
// fault.
func (p *Plan) Malformed(r Target, fr Frame, mediaType string) (func([]byte) []byte, *Injection) {
	e, i := find[faults.Malform](p, func(m faults.Match) bool {
		if len(m.Frames) == 0 {
			switch fr.Kind {
			case watch.Bookmark, faults.InitialEventsEnd:
				return false
			}
			return r.matches(m) && matchesObject(m, fr.Key.Namespace, fr.Key.Name)
		}
		return r.matches(m) && fr.matches(m)
	})
	switch {
	case i == nil:
		return nil, nil
	case e.Mangle != nil:
		return func(body []byte) []byte { return e.Mangle(bytes.Clone(body)) }, i
	case mediaType == wire.Protobuf:
		return mangleMessage, i
	}
	return mangle, i
}

// mangle gives every field of an object a wrong type, except kind, apiVersion and metadata.
func mangle(body []byte) []byte {
	tree, err := object.Decode(body)
	if err != nil {
		return body
	}
	for name, value := range tree {
		switch name {
		case "kind", "apiVersion", "metadata":
			continue
		}
		if _, ok := value.(int64); ok {
			tree[name] = "malformed"
		} else {
			tree[name] = int64(7)
		}
	}
	object.SetDefault(tree, "spec", int64(7))
	out, err := json.Marshal(tree)
	if err != nil {
		return body
	}
	return out
}

// mangleMessage gives every field of a message a wrong type, except the metadata, which are the first field of every
// object. Numbers of 32 bits are wrong everywhere, because no type of Kubernetes has one.
func mangleMessage(message []byte) []byte {
	const metadata, second = 1, 2
	var out []byte
	wrong := func(number protowire.Number) {
		out = protowire.AppendFixed32(protowire.AppendTag(out, number, protowire.Fixed32Type), 7)
	}
	wrong(second) // also in an object that has only metadata
	for rest := message; len(rest) > 0; {
		number, _, size := protowire.ConsumeField(rest)
		switch {
		case size < 0:
			return message
		case number == metadata:
			out = append(out, rest[:size]...)
		case number != second:
			wrong(number)
		}
		rest = rest[size:]
	}
	return out
}
