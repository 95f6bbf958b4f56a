package builtin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
	"github.com/leatproject/leat/testserver/internal/wire"
)

// MediaTypes implements registry.Schema.
func (s *rules) MediaTypes() []string {
	out := make([]string, len(mediaTypes))
	for i, info := range mediaTypes {
		out[i] = info.MediaType
	}
	return out
}

// Decode implements registry.Schema.
func (s *rules) Decode(to registry.Target, mediaType string, body []byte) (object.Tree, []string, error) {
	info, ok := runtime.SerializerInfoForMediaType(mediaTypes, mediaType)
	if !ok {
		return nil, nil, wire.Unsupported(s.MediaTypes()...)
	}
	want := s.kind(to)
	if info.MediaType == runtime.ContentTypeJSON {
		if obj, problems, ok := decodeDirectly(want, body); ok {
			tree, err := s.decoded(to, obj, want)
			return tree, problems, err
		}
	}
	into, err := legacyscheme.Scheme.New(want)
	if err != nil {
		return nil, nil, apierrors.NewInternalError(err)
	}
	obj, got, err := info.StrictSerializer.Decode(body, &want, into)
	var problems []string
	if obj != nil {
		problems, err = wire.StrictProblems(err)
	}
	if err == nil && *got == oldEviction && want == newEviction {
		if obj, err = convertEviction(obj); err != nil {
			return nil, nil, err
		}
		got, into = &want, obj
	}
	switch {
	case err == nil && *got == want && obj == into:
	case to.Patched && err != nil:
		return nil, nil, &registry.UndecodableError{Err: err, Conversion: unconvertible(want, body)}
	default:
		return nil, nil, s.decodeError(want, got, obj, body, err)
	}
	tree, err := s.decoded(to, obj, want)
	return tree, problems, err
}

// unconvertible returns the error of the conversion of a tree to a Go type, or nil.
func unconvertible(want schema.GroupVersionKind, body []byte) error {
	tree, err := object.Decode(body)
	if err != nil {
		return nil // the other error is about JSON, too
	}
	into, err := legacyscheme.Scheme.New(want)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(tree, into)
}

// kube-apiserver also takes evictions in the version of clients before Kubernetes 1.22.
var (
	oldEviction = policyv1beta1.SchemeGroupVersion.WithKind("Eviction")
	newEviction = policyv1.SchemeGroupVersion.WithKind("Eviction")
)

func convertEviction(obj runtime.Object) (runtime.Object, error) {
	common, err := convert(obj, internal(policyv1.GroupName))
	if err != nil {
		return nil, err
	}
	return convert(common, policyv1.SchemeGroupVersion)
}

// decoded returns the tree of a decoded object with its defaults, and leaves the object for the next step of the write.
func (s *rules) decoded(to registry.Target, obj runtime.Object, kind schema.GroupVersionKind) (object.Tree, error) {
	complete(obj)
	if s.resource.converted && kind.Kind == s.resource.kind {
		internal, err := convert(obj, internal(kind.Group))
		if err != nil {
			return nil, err
		}
		if obj, err = convert(internal, kind.GroupVersion()); err != nil {
			return nil, err
		}
	}
	if to.Values != nil {
		to.Values.Sent = obj
	}
	return untyped(obj, kind)
}

// complete sets the defaults of a decoded object. The stringData of a Secret, which only clients write, become data.
func complete(obj runtime.Object) {
	legacyscheme.Scheme.Default(obj)
	secret, ok := obj.(*corev1.Secret)
	if !ok || len(secret.StringData) == 0 {
		return
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for name, text := range secret.StringData {
		secret.Data[name] = []byte(text)
	}
	secret.StringData = nil
}

// decodeDirectly decodes JSON with the wanted kind and version. It returns false for everything else, which the slower
// serializer decodes or rejects: that one parses the body twice, first only for the kind.
func decodeDirectly(want schema.GroupVersionKind, body []byte) (obj runtime.Object, problems []string, ok bool) {
	obj, err := legacyscheme.Scheme.New(want)
	if err != nil {
		return nil, nil, false
	}
	strict, err := kjson.UnmarshalStrict(body, obj)
	if err != nil || obj.GetObjectKind().GroupVersionKind() != want {
		return nil, nil, false
	}
	for _, e := range strict {
		problems = append(problems, e.Error())
	}
	return obj, problems, true
}

// decodeError returns the answer to a body that is not an object of the wanted kind, in the words of kube-apiserver.
func (s *rules) decodeError(want schema.GroupVersionKind, got *schema.GroupVersionKind, obj runtime.Object, body []byte, err error) error {
	if err == nil { // an object of another kind
		if got.GroupKind() == want.GroupKind() {
			return wire.OtherVersion(got.GroupVersion(), want.GroupVersion())
		}
		err = conversionError(want, obj)
	}
	return wire.Undecodable(want.Kind, got, err, body)
}

// conversionError is the error of a conversion into another kind, which always fails.
func conversionError(want schema.GroupVersionKind, obj runtime.Object) error {
	into, err := legacyscheme.Scheme.New(schema.GroupVersionKind{
		Group: want.Group, Version: runtime.APIVersionInternal, Kind: want.Kind,
	})
	if err != nil {
		return err
	}
	if err := legacyscheme.Scheme.Convert(obj, into, nil); err != nil {
		return err
	}
	return fmt.Errorf("it is a %T", obj)
}

// Encode implements registry.Schema.
func (s *rules) Encode(mediaType string, tree object.Tree) ([]byte, error) {
	return Encode(mediaType, tree)
}

// Encode encodes an object of any built-in kind, or a Table, a Status or metadata, in a media type other than JSON. The
// tree has kind and apiVersion.
func Encode(mediaType string, tree object.Tree) ([]byte, error) {
	info, ok := runtime.SerializerInfoForMediaType(mediaTypes, mediaType)
	if !ok {
		return nil, fmt.Errorf("testserver: no encoding for media type %q", mediaType)
	}
	gvk := schema.FromAPIVersionAndKind(object.StringAt(tree, "apiVersion"), object.StringAt(tree, "kind"))
	obj, err := legacyscheme.Scheme.New(gvk)
	if err != nil {
		obj, err = metaScheme.New(gvk)
	}
	if err != nil {
		return nil, fmt.Errorf("testserver: encode: %w", err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, obj); err != nil {
		return nil, fmt.Errorf("testserver: encode %s: %w", gvk.Kind, err)
	}
	return runtime.Encode(info.Serializer, obj)
}
