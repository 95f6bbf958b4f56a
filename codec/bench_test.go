package codec_test

import (
	"bytes"
	"context"
	"fmt"
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
