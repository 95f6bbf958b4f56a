package codec

import (
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec/internal/wireplan"
)

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
