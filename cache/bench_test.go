package cache_test

import (
	"fmt"
	"testing"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
)

// updates returns a function that changes one object and publishes it in a transaction of its own.
func updates(ix *cache.Indexer[*pod], pods []*pod, change func(p *pod, i int)) func() {
	i := 0
	return func() {
		i++
		changed := *pods[(i*7919)%len(pods)]
		change(&changed, i)
		txn := ix.Begin()
		txn.Set(&changed)
		txn.Commit("2")
	}
}

var nodes = func() (names [1000]string) {
	for i := range names {
		names[i] = fmt.Sprintf("node-%d", i)
	}
	return names
}()

func keepNode(p *pod, i int) { p.version = "2" }
func moveNode(p *pod, i int) { p.node = nodes[(i*i+i>>7)%1000] }

// BenchmarkUpdate publishes single updates. Of the allocated bytes, 144 are the object itself.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		ix := cache.New[*pod]()
		pods := fill(ix, n)
		run := func(name string, change func(*pod, int)) {
			b.Run(fmt.Sprintf("n=%d/%s", n, name), func(b *testing.B) {
				update := updates(ix, pods, change)
				b.ReportAllocs()
				for b.Loop() {
					update()
				}
			})
		}
		run("index=none", keepNode)
		cache.AddIndex(ix, byNode)
		run("index=stays", keepNode)
		run("index=moves", moveNode)
	}
}

// BenchmarkFill loads a cache in one transaction.
func BenchmarkFill(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		pods := make([]*pod, n)
		for i := range pods {
			pods[i] = newPod(i)
		}
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				ix := cache.New[*pod]()
				cache.AddIndex(ix, byNode)
				txn := ix.Begin()
				for _, p := range pods {
					txn.Set(p)
				}
				txn.Commit("1")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		ix := cache.New[*pod]()
		pods := fill(ix, n)
		byNode := cache.AddIndex(ix, byNode)
		b.Run(fmt.Sprintf("n=%d/get", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				ix.Get(api.KeyOf(pods[(i*7919)%n]))
			}
		})
		b.Run(fmt.Sprintf("n=%d/list", n), func(b *testing.B) {
			for b.Loop() {
				ix.List()
			}
		})
		b.Run(fmt.Sprintf("n=%d/all", n), func(b *testing.B) {
			for b.Loop() {
				for range ix.Snapshot().All() {
				}
			}
		})
		b.Run(fmt.Sprintf("n=%d/index", n), func(b *testing.B) {
			for b.Loop() {
				byNode.ByIndex("node-7")
			}
		})
	}
}
