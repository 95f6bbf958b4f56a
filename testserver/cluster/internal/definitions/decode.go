package definitions

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

const (
	jsonType     = "application/json"
	yamlType     = "application/yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// untyped creates objects without a Go type.
type untyped struct{}

// New implements runtime.ObjectCreater.
func (untyped) New(kind runtimeschema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// decoders are strict: they report fields that occur twice.
var decoders = map[string]runtime.Decoder{
	jsonType: newDecoder(kubejson.SerializerOptions{Strict: true}),
	yamlType: newDecoder(kubejson.SerializerOptions{Strict: true, Yaml: true}),
}

func newDecoder(o kubejson.SerializerOptions) runtime.Decoder {
	return kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, untyped{}, crdserverscheme.NewUnstructuredObjectTyper(), o)
}

// Decode implements registry.Schema.
func (s *schema) Decode(to registry.Target, mediaType string, body []byte) (object.Tree, []string, error) {
	if to.Subresource == "scale" {
		return decodeScale(to, mediaType, body)
	}
	decoder := decoders[mediaType]
	if decoder == nil {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("definitions: cannot decode custom resources from %s", mediaType))
	}
	want := s.gk.WithVersion(to.Served)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(want)
	_, got, err := decoder.Decode(body, &want, u)
	problems, err := wire.StrictProblems(err)
	if err != nil {
		return nil, nil, undecodable(to, s.gk.Kind, got, err, body)
	}
	c := coercer{schema: s, track: true, nulls: to.Applied}
	if err := c.coerce(u); err != nil {
		return nil, nil, undecodable(to, s.gk.Kind, got, err, body)
	}
	for _, path := range c.unknown {
		problems = append(problems, fmt.Sprintf("unknown field %q", path))
	}
	if gv := u.GroupVersionKind().GroupVersion(); !to.Patched && gv != want.GroupVersion() {
		return nil, nil, wire.OtherVersion(gv, want.GroupVersion())
	}
	s.setDefaults(u)
	return u.Object, problems, nil
}

// undecodable returns the answer to a body that is not an object of a kind: 400, or 422 if it is the result of a patch.
func undecodable(to registry.Target, kind string, got *runtimeschema.GroupVersionKind, err error, body []byte) error {
	if to.Patched {
		return &registry.UndecodableError{Err: err}
	}
	return wire.Undecodable(kind, got, err, body)
}
