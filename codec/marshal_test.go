package codec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

var widgets = api.Resource{Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets"}

func TestMarshalFillsInKind(t *testing.T) {
	type typed struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	type alwaysThere struct {
		Name       string `json:"name"`
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	type bare struct {
		Name string `json:"name,omitempty"`
	}
	for _, test := range []struct {
		obj  any
		want string
	}{
		{&typed{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`},
		{&typed{TypeMeta: metav1.TypeMeta{Kind: "Gadget", APIVersion: "example.com/v2"}}, `{"kind":"Gadget","apiVersion":"example.com/v2","metadata":{}}`},
		{&typed{TypeMeta: metav1.TypeMeta{Kind: "Gadget"}}, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{}}`},
		{&alwaysThere{Name: "a"}, `{"apiVersion":"example.com/v1","kind":"Widget","name":"a"}`},
		{&bare{"a"}, `{"apiVersion":"example.com/v1","kind":"Widget","name":"a"}`},
		{&bare{}, `{"apiVersion":"example.com/v1","kind":"Widget"}`},
		{&unstructured.Unstructured{Object: map[string]any{"spec": int64(1) << 60}}, `{"apiVersion":"example.com/v1","kind":"Widget","spec":1152921504606846976}`},
		{&unstructured.Unstructured{}, `{"apiVersion":"example.com/v1","kind":"Widget"}`},
		{&unstructured.Unstructured{Object: map[string]any{"kind": "Own", "apiVersion": "v9"}}, `{"apiVersion":"v9","kind":"Own"}`},
	} {
		before := mustJSON(test.obj)
		b := must.Get(codec.Marshal(test.obj, asJSON, widgets))(t)
		require.Equal(t, test.want, string(b))
		require.Equal(t, before, mustJSON(test.obj), "the object is the caller's")
	}
	b := must.Get(codec.Marshal(&metav1.DeleteOptions{}, asJSON, api.Resource{}))(t)
	require.Equal(t, "{}", string(b), "without a kind nothing is added")
}

func TestMarshalRejectsOtherValues(t *testing.T) {
	list := []int{1}
	require.ErrorContains(t, must.Err(codec.Marshal(&list, asJSON, widgets)), "not a JSON object")
	_, err := codec.Marshal(func() {}, asJSON, widgets)
	var unsupported *json.UnsupportedTypeError
	require.ErrorAs(t, err, &unsupported)
	require.ErrorIs(t, must.Err(codec.Marshal(&small{}, asProtobuf, widgets)), codec.ErrMediaType)
	_, err = codec.Marshal(&justObjectMeta{}, asProtobuf, widgets)
	require.ErrorIs(t, err, codec.ErrMediaType, "the embedded Marshal would drop the other fields")
	require.ErrorIs(t, must.Err(codec.Marshal(selfMade{}, asProtobuf, widgets)), codec.ErrMediaType)
	require.ErrorIs(t, must.Err(codec.Marshal(&small{}, "text/plain", widgets)), codec.ErrMediaType)
}

// apimachinery's serializer reads the output of leat, and leat reads the output of apimachinery's serializer.
func TestProtobufLikeReference(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	reference := protobuf.NewSerializer(scheme, scheme)

	pod := newPod(1)
	pod.TypeMeta = metav1.TypeMeta{}
	b := must.Get(codec.Marshal(pod, asProtobuf, pods))(t)
	require.Empty(t, pod.Kind, "the object is the caller's")
	decoded, gvk, err := reference.Decode(b, nil, nil)
	require.NoError(t, err)
	require.Equal(t, pods.GroupVersionKind(), *gvk)
	requireSame(t, newPod(1).Spec, decoded.(*corev1.Pod).Spec)

	for _, obj := range []runtime.Object{newPod(1)} {
		encoded := must.Get(runtime.Encode(reference, obj))(t)
		back := must.Get(podCodec.DecodeObject(context.Background(), strings.NewReader(string(encoded)), asProtobuf, pods))(t)
		requireSame(t, newPod(1), back)
	}

	own := newPod(1)
	own.Kind, own.APIVersion = "Special", "v2"
	b = must.Get(codec.Marshal(own, asProtobuf, pods))(t)
	var unknown runtime.Unknown
	require.NoError(t, unknown.Unmarshal(b[4:]))
	require.Equal(t, runtime.TypeMeta{Kind: "Special", APIVersion: "v2"}, unknown.TypeMeta)
}

// Every kind survives a round trip in both formats.
func TestRoundTrip(t *testing.T) {
	for i := range 5 {
		for _, media := range []string{asJSON, asProtobuf} {
			b := must.Get(codec.Marshal(newPod(i), media, pods))(t)
			pod := must.Get(podCodec.DecodeObject(context.Background(), strings.NewReader(string(b)), media, pods))(t)
			requireSame(t, newPod(i), pod)
		}
	}
}

// scribbler overwrites, on request, all memory that it was read into.
type scribbler struct {
	io.Reader
	seen [][]byte
}

func (s *scribbler) Read(p []byte) (int, error) {
	s.seen = append(s.seen, p)
	return s.Reader.Read(p)
}

func (s *scribbler) overwrite() {
	for _, p := range s.seen {
		for i := range p {
			p[i] = 0xAA
		}
	}
}

// Generated Unmarshal methods copy what they keep, so the buffer of a stream may be reused at once.
func TestProtobufDoesNotAliasBuffer(t *testing.T) {
	stream := &scribbler{Reader: bytes.NewReader(streamOf(asProtobuf, "ADDED", newPod(1), "ADDED", newPod(2)))}
	r := must.Get(podCodec.NewEventReader(context.Background(), stream, asProtobuf, pods, podOptions{}))(t)
	first := must.Get(r.Next())(t)
	stream.overwrite()
	_, _ = r.Next()
	requireSame(t, newPod(1), first.Object)

	for _, typ := range kinds(t) {
		message, ok := newMessage(typ)
		if !ok {
			continue
		}
		newFiller(1, 0.2).fill(message.Elem(), 0)
		b, err := message.Interface().(interface{ Marshal() ([]byte, error) }).Marshal()
		require.NoError(t, err, typ)
		one, _ := newMessage(typ)
		two, _ := newMessage(typ)
		require.NoError(t, one.Interface().(interface{ Unmarshal([]byte) error }).Unmarshal(b), typ)
		require.NoError(t, two.Interface().(interface{ Unmarshal([]byte) error }).Unmarshal(append([]byte(nil), b...)), typ)
		for i := range b {
			b[i] = 0xAA
		}
		requireSame(t, two.Interface(), one.Interface())
	}
}

// selfMade is not a pointer to a struct, so it is not an object.
type selfMade []int

func (selfMade) Marshal() ([]byte, error) { return nil, nil }
