package definitions

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/scale"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// codec encodes and decodes objects with Go types.
type codec struct {
	scheme  *runtime.Scheme
	factory serializer.CodecFactory
}

var (
	scaleCodec      = newCodec(scale.NewScaleConverter().Scheme())
	definitionCodec = newCodec(definitionScheme())
)

func newCodec(s *runtime.Scheme) codec {
	return codec{scheme: s, factory: serializer.NewCodecFactory(s, serializer.EnableStrict)}
}

func definitionScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	metav1.AddToGroupVersion(s, runtimeschema.GroupVersion{Version: "v1"})
	return s
}

// decode parses a body, adds the defaults of its kind, and returns the object in the version of kind.
func (c codec) decode(to registry.Target, kind runtimeschema.GroupVersionKind, mediaType string, body []byte) (runtime.Object, []string, error) {
	info, ok := runtime.SerializerInfoForMediaType(c.factory.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, nil, apierrors.NewInternalError(fmt.Errorf("definitions: cannot decode %s from %s", kind.Kind, mediaType))
	}
	from := info.StrictSerializer
	if from == nil {
		from = info.Serializer
	}
	obj, got, err := c.factory.DecoderToVersion(from, kind.GroupVersion()).Decode(body, &kind, nil)
	problems, err := wire.StrictProblems(err)
	if err != nil || obj == nil {
		return nil, nil, undecodable(to, kind.Kind, got, err, body)
	}
	if !to.Patched && got != nil && got.GroupVersion() != kind.GroupVersion() {
		return nil, nil, wire.OtherVersion(got.GroupVersion(), kind.GroupVersion())
	}
	return obj, problems, nil
}

// encode returns an object in a media type. The object has a type of version gv.
func (c codec) encode(obj runtime.Object, gv runtimeschema.GroupVersion, mediaType string) ([]byte, error) {
	info, ok := runtime.SerializerInfoForMediaType(c.factory.SupportedMediaTypes(), mediaType)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: cannot encode %s", mediaType))
	}
	encoded, err := runtime.Encode(c.factory.EncoderForVersion(info.Serializer, gv), obj)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("definitions: encode %s: %w", mediaType, err))
	}
	return encoded, nil
}

// decodeScale parses the body of a write to a scale subresource.
func decodeScale(to registry.Target, mediaType string, body []byte) (object.Tree, []string, error) {
	kind := runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	obj, problems, err := scaleCodec.decode(to, kind, mediaType, body)
	if err != nil {
		return nil, nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	tree, err := object.From(obj)
	return tree, problems, err
}
