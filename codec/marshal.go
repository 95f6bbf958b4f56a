package codec

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/jsonplan"
	"github.com/leatproject/leat/codec/internal/scan"
	"github.com/leatproject/leat/codec/internal/wireplan"
	"github.com/leatproject/leat/internal/quote"
)

// Marshal encodes an object like Kubernetes: as JSON, or in protobuf's envelope if mediaType requests it and the object
// has its own Marshal method. obj is a pointer to a struct; Marshal does not change it. If the object's apiVersion and
// kind are empty or not declared, Marshal uses those of resource; an empty resource.Kind adds nothing. The error is a
// MediaTypeError if the object cannot be encoded in that format, or an error of encoding/json. It corresponds to
// runtime.Encode of client-go, without a scheme.
func Marshal(obj any, mediaType string, resource api.Resource) ([]byte, error) {
	if at := formatOf(mediaType); at >= 0 {
		if b, err := formats[at].marshal(obj, resource); err != errNotEncodable {
			return b, err
		}
	}
	return nil, &MediaTypeError{MediaType: quote.Short(mediaType, maxQuoted)}
}

// errNotEncodable means that an object has no encoding in a format.
var errNotEncodable = errors.New("not encodable")

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

// marshaler is the method of a type that was generated from protobuf.
type marshaler interface{ Marshal() ([]byte, error) }

// marshal wraps the message of an object in a runtime.Unknown. This envelope contains apiVersion and kind; the
// message does not.
func (*protobufFormat) marshal(obj any, resource api.Resource) ([]byte, error) {
	m, ok := obj.(marshaler)
	if !ok || !wireplan.Owns[marshaler](reflect.TypeOf(obj)) {
		return nil, errNotEncodable
	}
	raw, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	apiVersion, kind := resource.GroupVersion().String(), resource.Kind
	if o, ok := obj.(runtime.Object); ok {
		if gvk := o.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
			apiVersion, kind = gvk.GroupVersion().String(), gvk.Kind
		}
	}
	var typeMeta []byte
	typeMeta = appendField(typeMeta, typeMetaAPIVersion, apiVersion)
	typeMeta = appendField(typeMeta, typeMetaKind, kind)
	b := make([]byte, 0, len(magic)+len(typeMeta)+len(raw)+16)
	b = append(b, magic...)
	b = appendField(b, unknownTypeMeta, typeMeta)
	b = appendField(b, unknownRaw, raw)
	b = appendField(b, unknownContentEncoding, "")
	return appendField(b, unknownContentType, ""), nil
}

func appendField[B []byte | string](b []byte, num protowire.Number, v B) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(v)))
	return append(b, v...)
}
