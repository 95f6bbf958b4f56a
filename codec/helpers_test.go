package codec_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	stdruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/internal/fixture/must"
)

const (
	asJSON     = codec.MediaTypeJSON
	asProtobuf = codec.MediaTypeProtobuf
)

type (
	podOptions          = api.Options[*corev1.Pod]
	unstructuredOptions = api.Options[*unstructured.Unstructured]
)

var (
	podCodec          = codec.New[*corev1.Pod](codec.Options{})
	unstructuredCodec = codec.New[*unstructured.Unstructured](codec.Options{})
	metadataCodec     = codec.New[*metav1.PartialObjectMetadata](codec.Options{})
	smallCodec        = codec.New[*small](codec.Options{})
)

// sealed puts a message into the envelope with apimachinery's own types.
func sealed(apiVersion, kind string, message interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := message.Marshal()
	if err != nil {
		panic(err)
	}
	return sealedBytes(apiVersion, kind, raw)
}

func sealedBytes(apiVersion, kind string, raw []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	b, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), b...)
}

// jsonFrame is an event as a server writes it; object is JSON.
func jsonFrame(event string, object []byte) []byte {
	return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", event, object)
}

// protobufMessage is a WatchEvent; object is an envelope.
func protobufMessage(event string, object []byte) []byte {
	frame := metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: object}}
	b, err := frame.Marshal()
	if err != nil {
		panic(err)
	}
	return b
}

func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

func protobufFrame(event string, object []byte) []byte { return framed(protobufMessage(event, object)) }

// podList is a list of n pods in both formats.
func podList(n int, media string) []byte {
	list := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "4242", Continue: "more"},
	}
	for i := range n {
		pod := newPod(i)
		pod.TypeMeta = metav1.TypeMeta{} // as servers do
		list.Items = append(list.Items, *pod)
	}
	if media == asProtobuf {
		return sealed("v1", "PodList", list)
	}
	return mustJSON(list)
}

// collect decodes a list and returns its items.
func collect[T any](c *codec.Codec[T], body, media string, resource api.Resource, o api.Options[T]) ([]T, metav1.ListMeta, error) {
	var items []T
	meta, err := c.DecodeList(context.Background(), strings.NewReader(body), media, resource, o, func(item T) error {
		items = append(items, item)
		return nil
	})
	return items, meta, err
}

// events decodes a stream and returns its events and the error that ends it.
func events[T any](t testing.TB, c *codec.Codec[T], body []byte, media string, resource api.Resource, o api.Options[T]) ([]api.Event[T], error) {
	t.Helper()
	r := must.Get(c.NewEventReader(context.Background(), bytes.NewReader(body), media, resource, o))(t)
	var all []api.Event[T]
	for {
		event, err := r.Next()
		if err != nil {
			return all, err
		}
		all = append(all, event)
	}
}

// oneByte reads a byte at a time, so that every position is once the end of a window.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// allocatedBytes returns how many bytes f allocates, including garbage.
func allocatedBytes(f func()) uint64 {
	var before, after stdruntime.MemStats
	stdruntime.ReadMemStats(&before)
	f()
	stdruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// requireSame compares like Kubernetes: times are equal in any zone, and quantities in any notation.
func requireSame(t testing.TB, want, got any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, got) { // not every decoded object can be encoded as JSON
		require.Fail(t, "the objects differ", "want %.2000s\ngot  %.2000s", fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got))
	}
}

var listOptions = api.Options[*small]{}

func discard[T any](T) error { return nil }
