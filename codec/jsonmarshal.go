package codec

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/jsonplan"
	"github.com/leatproject/leat/codec/internal/scan"
)

// marshal encodes the object and then inserts the missing members into the bytes. So it needs neither a copy of the
// object nor a field for them, and the type's own MarshalJSON still works.
func (*jsonFormat) marshal(obj any, resource api.Resource) ([]byte, error) {
	if g, ok := obj.(jsonplan.Generic); ok {
		obj = g.UnstructuredContent()
	}
	b, err := stdjson.Marshal(obj)
	if err != nil || resource.Kind == "" {
		return b, err
	}
	if len(b) == 0 || b[0] != '{' {
		return nil, fmt.Errorf("codec: %T does not encode as an object: %w", obj, jsonplan.ErrNotAnObject)
	}
	return withTypeMeta(b, resource), nil
}

// withTypeMeta adds the apiVersion and kind that the object in b omits or leaves empty.
func withTypeMeta(b []byte, resource api.Resource) []byte {
	missing := map[string]string{"apiVersion": resource.GroupVersion().String(), "kind": resource.Kind}
	for name, value := range scan.Members(b) {
		if len(scan.TextOf(value.In(b))) > 0 {
			delete(missing, string(scan.Text(name.In(b))))
		}
	}
	if len(missing) == 0 {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for _, name := range [...]string{"apiVersion", "kind"} {
		if value, ok := missing[name]; ok {
			out = fmt.Appendf(out, ",%q:%q", name, value)
		}
	}
	for name, value := range scan.Members(b) {
		if _, ok := missing[string(scan.Text(name.In(b)))]; !ok {
			out = append(append(out, ','), b[name.From:value.To]...)
		}
	}
	out[0] = '{'
	return append(out, '}')
}
