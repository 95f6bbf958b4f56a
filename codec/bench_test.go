package codec_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// around repeats one stream forever.
type around struct {
	b  []byte
	at int
}

func (a *around) Read(p []byte) (int, error) {
	n := copy(p, a.b[a.at:])
	a.at = (a.at + n) % len(a.b)
	return n, nil
}

func benchmarkList[T api.Object](b *testing.B, c *codec.Codec[T], media string, o api.Options[T]) {
	const n = 100
	body := podList(n, media)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)) / n)
	for i := 0; b.Loop(); i++ {
		// An operation is one object of a list of a hundred.
		if i%n != 0 {
			continue
		}
		if _, err := c.DecodeList(context.Background(), bytes.NewReader(body), media, pods, o, discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	for _, media := range []string{asJSON, asProtobuf} {
		name := map[string]string{asJSON: "/media=json", asProtobuf: "/media=protobuf"}[media]
		b.Run("type=pod"+name, func(b *testing.B) { benchmarkList(b, podCodec, media, podOptions{DropManagedFields: true}) })
		b.Run("type=pod/managed=kept"+name, func(b *testing.B) { benchmarkList(b, podCodec, media, podOptions{}) })
		b.Run("type=metadata"+name, func(b *testing.B) {
			benchmarkList(b, metadataCodec, media, api.Options[*metav1.PartialObjectMetadata]{DropManagedFields: true})
		})
		known := make([]*corev1.Pod, 100)
		for i := range known {
			known[i] = newPod(i)
		}
		b.Run("type=pod/known=all"+name, func(b *testing.B) {
			benchmarkList(b, podCodec, media, podOptions{DropManagedFields: true, Known: knows(known...)})
		})
	}
	b.Run("type=small/media=json", func(b *testing.B) {
		benchmarkList(b, smallCodec, asJSON, api.Options[*small]{DropManagedFields: true})
	})
	b.Run("type=unstructured/media=json", func(b *testing.B) {
		benchmarkList(b, unstructuredCodec, asJSON, api.Options[*unstructured.Unstructured]{DropManagedFields: true})
	})
}

func benchmarkEvents[T api.Object](b *testing.B, c *codec.Codec[T], media string, o api.Options[T]) {
	var stream []byte
	for i := range 50 {
		stream = append(stream, frameOf(media, "MODIFIED", newPod(i))...)
	}
	r, err := c.NewEventReader(context.Background(), &around{b: stream}, media, pods, o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(stream)) / 50)
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvents(b *testing.B) {
	b.Run("type=pod/media=json", func(b *testing.B) { benchmarkEvents(b, podCodec, asJSON, podOptions{DropManagedFields: true}) })
	b.Run("type=pod/media=protobuf", func(b *testing.B) {
		benchmarkEvents(b, podCodec, asProtobuf, podOptions{DropManagedFields: true})
	})
	b.Run("type=small/media=json", func(b *testing.B) {
		benchmarkEvents(b, smallCodec, asJSON, api.Options[*small]{DropManagedFields: true})
	})
	b.Run("type=metadata/media=json", func(b *testing.B) {
		benchmarkEvents(b, metadataCodec, asJSON, api.Options[*metav1.PartialObjectMetadata]{DropManagedFields: true})
	})
	b.Run("type=metadata/media=protobuf", func(b *testing.B) {
		benchmarkEvents(b, metadataCodec, asProtobuf, api.Options[*metav1.PartialObjectMetadata]{DropManagedFields: true})
	})
	b.Run("type=unstructured/media=json", func(b *testing.B) {
		benchmarkEvents(b, unstructuredCodec, asJSON, api.Options[*unstructured.Unstructured]{DropManagedFields: true})
	})
}

// BenchmarkStatusUpdates has updates that change only the version and the status, with the last state of each pod in
// memory, as in a cache.
func BenchmarkStatusUpdates(b *testing.B) {
	const objects, states = 50, 40
	for _, media := range []string{asJSON, asProtobuf} {
		var stream []byte
		for s := range states {
			for i := range objects {
				pod := newPod(i)
				pod.ResourceVersion = strconv.Itoa(200_000 + s*objects + i)
				pod.Status.ContainerStatuses[0].RestartCount = int32(s)
				pod.Status.Conditions[2].Message = "containers were restarted " + strconv.Itoa(s) + " times"
				stream = append(stream, frameOf(media, "MODIFIED", pod)...)
			}
		}
		for _, share := range []bool{false, true} {
			b.Run(fmt.Sprintf("media=%s/share=%v", map[string]string{asJSON: "json", asProtobuf: "protobuf"}[media], share), func(b *testing.B) {
				benchmarkUpdates(b, stream, media, podOptions{DropManagedFields: true, ShareParts: share}, objects)
			})
		}
	}
}

// BenchmarkFreshUpdates has states of pods in which every text is new, except the identity. Nothing can be shared.
func BenchmarkFreshUpdates(b *testing.B) {
	const objects, states = 50, 40
	for _, media := range []string{asJSON, asProtobuf} {
		var stream []byte
		for s := range states {
			for i := range objects {
				pod := newPod(i)
				name, namespace, id := pod.Name, pod.Namespace, pod.UID
				freshen(reflect.ValueOf(pod).Elem(), fmt.Sprintf("%06d", s*objects+i))
				pod.TypeMeta, pod.Name, pod.Namespace, pod.UID = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, name, namespace, id
				pod.ResourceVersion = strconv.Itoa(200_000 + s*objects + i)
				stream = append(stream, frameOf(media, "MODIFIED", pod)...)
			}
		}
		for _, share := range []bool{false, true} {
			b.Run(fmt.Sprintf("media=%s/share=%v", map[string]string{asJSON: "json", asProtobuf: "protobuf"}[media], share), func(b *testing.B) {
				benchmarkUpdates(b, stream, media, podOptions{DropManagedFields: true, ShareParts: share}, objects)
			})
		}
	}
}

// freshen appends a text to each text below v, except the keys of maps.
func freshen(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && v.Len() > 0 {
			v.SetString(v.String() + text)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			freshen(v.Elem(), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			freshen(v.Index(i), text)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if is := v.MapIndex(key); is.Kind() == reflect.String {
				v.SetMapIndex(key, reflect.ValueOf(is.String()+text).Convert(is.Type()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				freshen(v.Field(i), text)
			}
		}
	}
}

func benchmarkUpdates(b *testing.B, stream []byte, media string, o podOptions, objects int) {
	r, err := codec.New[*corev1.Pod](codec.Options{}).NewEventReader(context.Background(), &around{b: stream}, media, pods, o)
	if err != nil {
		b.Fatal(err)
	}
	held := make([]*corev1.Pod, objects)
	next := func(i int) {
		event, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		held[i%objects] = event.Object
	}
	for i := range objects {
		next(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		next(i)
	}
}
