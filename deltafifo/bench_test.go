package deltafifo_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/leatproject/leat/deltafifo"
)

// BenchmarkPutPop puts one watch event through the queue, which is the usual case in a quiet cluster.
func BenchmarkPutPop(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			q := deltafifo.New[*thing]()
			list := many(n, "1")
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				for _, o := range list {
					q.Put(o, "")
				}
				_ = q.Pop(ctx, func(batch) {})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}

func BenchmarkReplace(b *testing.B) {
	const n = 50_000
	run := func(changed int) func(*testing.B) {
		return func(b *testing.B) {
			q := deltafifo.New[*thing]()
			list := many(n, "1")
			lists := [2][]*thing{list, append(many(changed, "2"), list[changed:]...)}
			ctx := b.Context()
			q.Replace(lists[0], "1")
			_ = q.Pop(ctx, func(batch) {})
			version := 1
			b.ReportAllocs()
			for b.Loop() {
				version++
				q.Replace(lists[version%2], strconv.Itoa(version))
				_ = q.Pop(ctx, func(batch) {})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/object")
		}
	}
	b.Run("changed=0", run(0))
	b.Run("changed=500", run(500))
	b.Run("first", func(b *testing.B) {
		list := many(n, "1")
		ctx := b.Context()
		b.ReportAllocs()
		for b.Loop() {
			q := deltafifo.New[*thing]()
			q.Replace(list, "1")
			_ = q.Pop(ctx, func(batch) {})
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/object")
	})
}

func BenchmarkLookup(b *testing.B) {
	q := deltafifo.New[*thing]()
	list := many(50_000, "1")
	q.Replace(list, "1")
	namespace, name := []byte("ns"), []byte(list[777].name)
	b.ReportAllocs()
	for b.Loop() {
		q.Lookup(namespace, name)
	}
}
