package builtin

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kjson "sigs.k8s.io/json"

	"github.com/leatproject/leat/testserver/internal/object"
	"github.com/leatproject/leat/testserver/internal/registry"
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
		return nil, nil, unsupported(s.MediaTypes())
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
	problems, err := strictProblems(obj, err)
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

func unsupported(accepted []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}

// strictProblems separates unknown and repeated fields from errors.
func strictProblems(obj runtime.Object, err error) ([]string, error) {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok || obj == nil {
		return nil, err
	}
	var problems []string
	for _, e := range strict.Errors() {
		problems = append(problems, e.Error())
	}
	return problems, nil
}

// decodeError returns the answer to a body that is not an object of the wanted kind, in the words of kube-apiserver.
func (s *rules) decodeError(want schema.GroupVersionKind, got *schema.GroupVersionKind, obj runtime.Object, body []byte, err error) error {
	if err == nil { // an object of another kind
		if got.GroupKind() == want.GroupKind() {
			return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
				got.GroupVersion(), want.GroupVersion()))
		}
		err = conversionError(want, obj)
	}
	if got != nil && got.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
		want.Kind, err, summary(body)))
}

// summary shows the beginning of a body as kube-apiserver does: text that looks like JSON, or bytes in hexadecimal.
func summary(body []byte) string {
	if len(body) == 0 {
		return "<empty>"
	}
	const shown = 30
	more := ""
	if len(body) > shown {
		body, more = body[:shown], " ..."
	}
	if body[0] == '{' {
		return string(body) + more
	}
	return hex.EncodeToString(body) + more
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
