package codec_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

func TestDecodeObject(t *testing.T) {
	for media, body := range map[string][]byte{
		asJSON:                          mustJSON(newPod(1)),
		asJSON + "; charset=utf-8":      mustJSON(newPod(1)),
		"":                              append([]byte(" \n"), append(mustJSON(newPod(1)), "\n "...)...),
		asProtobuf:                      sealed("v1", "Pod", newPod(1)),
		asProtobuf + ";type=k8s.io.Pod": sealed("v1", "Pod", newPod(1)),
	} {
		pod, err := podCodec.DecodeObject(context.Background(), oneByte{strings.NewReader(string(body))}, media, pods)
		require.NoError(t, err, media)
		requireSame(t, newPod(1), pod)
	}
	generic := must.Get(unstructuredCodec.DecodeObject(context.Background(), strings.NewReader(`{"metadata":{"name":"a","generation":9007199254740993}}`), asJSON, pods))(t)
	require.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "generation": int64(9007199254740993)},
	}, generic.Object)
}

// Metadata is requested with its own kind, but returned with the kind of its resource.
func TestMetadataIsOfItsResource(t *testing.T) {
	body := `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`
	o := must.Get(metadataCodec.DecodeObject(context.Background(), strings.NewReader(body), asJSON, pods))(t)
	require.Equal(t, metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, o.TypeMeta)
	o = must.Get(metadataCodec.DecodeObject(context.Background(), strings.NewReader(body), asJSON, api.Resource{}))(t)
	require.Equal(t, "PartialObjectMetadata", o.Kind)
}

func TestObjectAnsweredWithStatus(t *testing.T) {
	failure := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonConflict, Code: 409}
	success := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}
	statusCodec := codec.New[*metav1.Status](codec.Options{})
	for media, encode := range map[string]func(*metav1.Status) string{
		asJSON:     func(s *metav1.Status) string { return string(mustJSON(s)) },
		asProtobuf: func(s *metav1.Status) string { return string(sealed("v1", "Status", s)) },
	} {
		_, err := podCodec.DecodeObject(context.Background(), strings.NewReader(encode(failure)), media, pods)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		_, err = podCodec.DecodeObject(context.Background(), strings.NewReader(encode(success)), media, pods)
		require.ErrorIs(t, err, codec.ErrUnexpectedKind)

		for _, want := range []*metav1.Status{failure, success} {
			got, err := statusCodec.DecodeObject(context.Background(), strings.NewReader(encode(want)), media, pods)
			require.NoError(t, err, "the caller requested a Status")
			require.Equal(t, want.Status, got.Status)
		}
	}
}

func TestObjectOfAnotherKind(t *testing.T) {
	for media, body := range map[string]string{
		asJSON:     `{"kind":"Service","apiVersion":"v1","metadata":{"name":"a"}}`,
		asProtobuf: string(sealed("v1", "Service", newPod(1))),
	} {
		_, err := podCodec.DecodeObject(context.Background(), strings.NewReader(body), media, pods)
		require.EqualError(t, err, `codec: asked for pods (kind "Pod" of "v1") and was answered with kind "Service" of "v1"`)
		_, err = podCodec.DecodeObject(context.Background(), strings.NewReader(body), media, api.Resource{Plural: "pods"})
		require.NoError(t, err, "a resource without a kind takes any")
	}
}

func TestObjectThatCannotBeDecoded(t *testing.T) {
	pod, err := podCodec.DecodeObject(context.Background(), strings.NewReader(`{"metadata":{"name":"a","namespace":"n"},"spec":7}`), asJSON, pods)
	var undecodable *api.UndecodableError
	require.ErrorAs(t, err, &undecodable)
	require.Equal(t, api.Key{Namespace: "n", Name: "a"}, undecodable.Key)
	require.Nil(t, pod)
}

// The caller gets the transport's error unchanged.
func TestErrorOfReaderIsPassedOn(t *testing.T) {
	reset := errors.New("connection reset by peer")
	for _, media := range []string{asJSON, asProtobuf} {
		body := func() io.Reader {
			return io.MultiReader(strings.NewReader(string(podList(2, media))[:7900]), &limited{err: reset})
		}
		_, err := podCodec.DecodeObject(context.Background(), body(), media, pods)
		require.Equal(t, reset, err)
		_, err = podCodec.DecodeList(context.Background(), body(), media, pods, podOptions{}, func(*corev1.Pod) error { return nil })
		require.Equal(t, reset, err)
		r := must.Get(podCodec.NewEventReader(context.Background(), body(), media, pods, podOptions{}))(t)
		_, err = r.Next()
		if media == asJSON {
			require.Equal(t, reset, err)
		}
	}
}

func TestUnsupportedMediaType(t *testing.T) {
	for _, media := range []string{"text/html", "application/cbor", "application/yaml", ";;", "application/json-patch+json"} {
		_, err := podCodec.DecodeObject(context.Background(), strings.NewReader("{}"), media, pods)
		require.ErrorIs(t, err, codec.ErrMediaType)
		require.ErrorContains(t, err, media)
		_, _, err = collect(podCodec, "{}", media, pods, podOptions{})
		require.ErrorIs(t, err, codec.ErrMediaType)
		_, err = podCodec.NewEventReader(context.Background(), strings.NewReader(""), media, pods, podOptions{})
		require.ErrorIs(t, err, codec.ErrMediaType)
	}
	require.ErrorIs(t, must.Err(unstructuredCodec.DecodeObject(context.Background(), strings.NewReader(""), asProtobuf, pods)), codec.ErrMediaType)
	require.ErrorIs(t, must.Err(smallCodec.DecodeObject(context.Background(), strings.NewReader(""), asProtobuf, pods)), codec.ErrMediaType)
}

func TestObjectTooLarge(t *testing.T) {
	body := mustJSON(newPod(1))
	list := []byte(`{"kind":"PodList","items":[` + string(body) + `]}`)
	for _, test := range []struct {
		limit int
		want  error
	}{{len(body), nil}, {len(body) - 1, codec.ErrTooLarge}, {100, codec.ErrTooLarge}} {
		c := codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: test.limit})
		require.ErrorIs(t, must.Err(c.DecodeObject(context.Background(), strings.NewReader(string(body)), asJSON, pods)), test.want)
		_, _, err := collect(c, string(list), asJSON, pods, podOptions{})
		require.ErrorIs(t, err, test.want)
	}
	sealedPod := sealed("v1", "Pod", newPod(1))
	frame := protobufFrame("ADDED", sealedPod)
	for _, test := range []struct {
		limit int
		want  error
	}{{len(frame) - 4, nil}, {len(frame) - 5, codec.ErrTooLarge}} {
		c := codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: test.limit})
		all, err := events(t, c, frame, asProtobuf, pods, podOptions{})
		if test.want == nil {
			require.Equal(t, io.EOF, err)
			require.Len(t, all, 1)
			continue
		}
		require.ErrorIs(t, err, test.want)
		var tooLarge *codec.TooLargeError
		require.ErrorAs(t, err, &tooLarge)
		require.Equal(t, test.limit, tooLarge.Limit)
	}
	c := codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: len(sealedPod)})
	must.Get(c.DecodeObject(context.Background(), strings.NewReader(string(sealedPod)), asProtobuf, pods))(t)
	c = codec.New[*corev1.Pod](codec.Options{MaxObjectBytes: len(sealedPod) - 1})
	require.ErrorIs(t, must.Err(c.DecodeObject(context.Background(), strings.NewReader(string(sealedPod)), asProtobuf, pods)), codec.ErrTooLarge)
}

// An append to a slice of a shared object makes a copy: there is no room behind its elements.
func TestSlicesHaveNoRoom(t *testing.T) {
	pod := newPod(1)
	pod.Spec.Containers[0].Args = make([]string, 17) // no size class of the allocator fits this number of strings exactly
	for _, media := range []string{asJSON, asProtobuf} {
		got, _ := events(t, podCodec, frameOf(media, "MODIFIED", pod), media, pods, podOptions{})
		args := got[0].Object.Spec.Containers[0].Args
		require.Len(t, args, 17)
		require.Equal(t, 17, cap(args), media)
	}
}
