//go:build unix

package codec_test

import (
	"context"
	"runtime"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
)

// benchmarkLive keeps the last few thousand objects, as a cache does. An operation decodes a watch event and replaces
// an older object, so that garbage collection costs what it costs in an agent. It reports the heap bytes of an object,
// and processor time, which other load on the machine disturbs less than elapsed time.
func benchmarkLive[T api.Object](b *testing.B, c *codec.Codec[T], media string, o api.Options[T]) {
	const n = 3000
	var stream []byte
	for i := range 300 {
		stream = append(stream, frameOf(media, "MODIFIED", newPod(i))...)
	}
	r, err := c.NewEventReader(context.Background(), &around{b: stream}, media, pods, o)
	if err != nil {
		b.Fatal(err)
	}
	before := liveBytes()
	kept := make([]T, n)
	next := func(i int) {
		event, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		kept[i%n] = event.Object
	}
	for i := range n {
		next(i)
	}
	b.ReportAllocs()
	cpu := processorTime(b)
	for i := 0; b.Loop(); i++ {
		next(i)
	}
	b.ReportMetric(float64(processorTime(b)-cpu)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(liveBytes()-before)/n, "live-B/object")
	runtime.KeepAlive(kept)
	runtime.KeepAlive(r)
}

// liveBytes returns the size of the heap after garbage collection.
func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func processorTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkLive(b *testing.B) {
	for _, media := range []string{asJSON, asProtobuf} {
		name := map[string]string{asJSON: "/media=json", asProtobuf: "/media=protobuf"}[media]
		b.Run("type=pod"+name, func(b *testing.B) { benchmarkLive(b, podCodec, media, podOptions{DropManagedFields: true}) })
	}
	b.Run("type=small/media=json", func(b *testing.B) {
		benchmarkLive(b, smallCodec, asJSON, api.Options[*small]{DropManagedFields: true})
	})
	b.Run("type=unstructured/media=json", func(b *testing.B) {
		benchmarkLive(b, unstructuredCodec, asJSON, api.Options[*unstructured.Unstructured]{DropManagedFields: true})
	})
}
