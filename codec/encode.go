package codec

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
)

// Marshal encodes an object the way Kubernetes sends it: as JSON, or in protobuf's envelope where mediaType says so and
// the object has a Marshal method of its own. obj is a pointer to a struct and is not changed. apiVersion and kind are
// resource's where the object leaves them empty or does not declare them; an empty resource.Kind adds nothing. It fails
// with a MediaTypeError for what the object cannot be encoded into, and with encoding/json's errors.
// It corresponds to runtime.Encode of client-go, without a scheme.
func Marshal(obj any, mediaType string, resource api.Resource) ([]byte, error) {
	switch mediaOf(mediaType) {
	case mediaJSON:
		return marshalJSON(obj, resource)
	case mediaProtobuf:
		if m, ok := obj.(marshaler); ok && owns[marshaler](reflect.TypeOf(obj)) {
			return marshalProtobuf(m, obj, resource)
		}
	}
	return nil, &MediaTypeError{MediaType: mediaType}
}

// marshaler is what a type generated from protobuf has.
type marshaler interface{ Marshal() ([]byte, error) }

// marshalJSON writes the object and then puts what is missing into the bytes: that needs no copy of the object, no
// field to put it in, and leaves alone whatever way the type has of writing itself.
func marshalJSON(obj any, resource api.Resource) ([]byte, error) {
	if g, ok := obj.(generic); ok {
		obj = g.UnstructuredContent()
	}
	b, err := stdjson.Marshal(obj)
	if err != nil || resource.Kind == "" {
		return b, err
	}
	if len(b) == 0 || b[0] != '{' {
		return nil, fmt.Errorf("codec: %T does not encode as an object: %w", obj, errNotAnObject)
	}
	return withTypeMeta(b, resource), nil
}

// withTypeMeta adds the apiVersion and kind that the object in b leaves out or empty.
func withTypeMeta(b []byte, resource api.Resource) []byte {
	missing := map[string]string{"apiVersion": resource.GroupVersion().String(), "kind": resource.Kind}
	for name, value := range membersOf(b) {
		if len(textOf(value.in(b))) > 0 {
			delete(missing, string(text(name.in(b))))
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
	for name, value := range membersOf(b) {
		if _, ok := missing[string(text(name.in(b)))]; !ok {
			out = append(append(out, ','), b[name.from:value.to]...)
		}
	}
	out[0] = '{'
	return append(out, '}')
}

// marshalProtobuf puts the message of an object into a runtime.Unknown, which carries its apiVersion and kind: the
// message itself has none.
func marshalProtobuf(m marshaler, obj any, resource api.Resource) ([]byte, error) {
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
