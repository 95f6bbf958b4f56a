package workqueue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leatproject/leat/workqueue"
)

func podCause() workqueue.Cause {
	return workqueue.Cause{Source: "pods", Event: "update", Object: "default/web-0", Version: "4711", At: time.Unix(1, 0)}
}

// BenchmarkQueue is the round of one key through a queue that nobody else uses.
func BenchmarkQueue(b *testing.B) {
	keys := make([]string, 64)
	for i := range keys {
		keys[i] = fmt.Sprintf("default/web-%d", i)
	}
	for _, mode := range []struct {
		name string
		item workqueue.Item
		o    workqueue.Options
	}{
		{"causes=off/metrics=off", workqueue.Item{}, workqueue.Options{}},
		{"causes=on/metrics=off", workqueue.Item{Cause: podCause()}, workqueue.Options{}},
		{"causes=on/metrics=on", workqueue.Item{Cause: podCause()}, workqueue.Options{Metrics: &workqueue.Metrics{}}},
	} {
		b.Run(mode.name, func(b *testing.B) {
			q, ctx, i := workqueue.New[string](mode.o), context.Background(), 0
			b.ReportAllocs()
			for b.Loop() {
				q.AddWith(keys[i%len(keys)], mode.item)
				w, err := q.Get(ctx)
				if err != nil {
					b.Fatal(err)
				}
				q.Done(w.Key)
				i++
			}
		})
	}
}

// BenchmarkQueueContended counts calls of Done: producers add keys of their own in turn, consumers take them.
func BenchmarkQueueContended(b *testing.B) {
	for _, priorities := range []int{1, 3} {
		b.Run(fmt.Sprintf("producers=4/consumers=4/priorities=%d", priorities), func(b *testing.B) {
			const producers, consumers, keysEach = 4, 4, 1000
			q := workqueue.New[string](workqueue.Options{})
			ctx, cancel := context.WithCancel(context.Background())
			var working sync.WaitGroup
			for p := range producers {
				keys := make([]string, keysEach)
				for i := range keys {
					keys[i] = fmt.Sprintf("ns-%d/web-%d", p, i)
				}
				working.Go(func() {
					item := workqueue.Item{Cause: podCause()}
					for i := 0; ctx.Err() == nil; i++ {
						item.Priority = i % priorities
						q.AddWith(keys[i%len(keys)], item)
					}
				})
			}
			done := make(chan struct{})
			var left = int64(b.N)
			var mu sync.Mutex
			take := func(n int64) bool {
				mu.Lock()
				defer mu.Unlock()
				left -= n
				return left <= 0
			}
			for range consumers {
				working.Go(func() {
					for n := int64(0); ; {
						w, err := q.Get(ctx)
						if err != nil {
							return
						}
						q.Done(w.Key)
						if n++; n == 100 {
							n = 0
							if take(100) {
								select {
								case done <- struct{}{}:
								case <-ctx.Done():
								}
								return
							}
						}
					}
				})
			}
			b.ResetTimer()
			<-done
			b.StopTimer()
			cancel()
			working.Wait()
		})
	}
}

// BenchmarkQueueAddAfter adds to a queue in which a million keys wait.
func BenchmarkQueueAddAfter(b *testing.B) {
	const waiting = 1_000_000
	q := workqueue.New[string](workqueue.Options{})
	for i := range waiting {
		q.AddAfter(fmt.Sprintf("default/web-%d", i), time.Hour+time.Duration(i*7919%waiting)*time.Millisecond)
	}
	b.Run("waiting=1000000/keys=new", func(b *testing.B) {
		keys := make([]string, 0, 1<<20)
		for i := range cap(keys) {
			keys = append(keys, fmt.Sprintf("other/web-%d", i))
		}
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			q.AddAfter(keys[i%len(keys)], time.Hour+time.Duration(i*7919%waiting)*time.Millisecond)
			i++
		}
	})
}
