package disturb

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/testserver/internal/object"
)

// Items returns the items that replace an item of a list: usually the item itself.
func (p *Plan) Items(r Target, key api.Key, item []byte) [][]byte {
	one := [][]byte{item}
	if !p.Busy() {
		return one
	}
	fr := Frame{Kind: faults.Item, Key: key}
	if _, i := OfFrame[faults.Drop](p, r, fr); i != nil {
		i.CountSeen()
		return nil
	}
	if mangled, i := p.Malformed(r, fr, item); i != nil {
		i.CountSeen()
		one[0] = mangled
	}
	if _, i := OfFrame[faults.Duplicate](p, r, fr); i != nil {
		i.CountSeen()
		return [][]byte{one[0], one[0]}
	}
	return one
}

// Malformed returns the JSON of an object after a Malform fault, or unchanged.
func (p *Plan) Malformed(r Target, fr Frame, body []byte) ([]byte, *Injection) {
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
	if i == nil {
		return body, nil
	}
	if e.Mangle != nil {
		return e.Mangle(bytes.Clone(body)), i
	}
	return mangle(body), i
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
