package workqueue_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leatproject/leat/workqueue"
)

func podCause() workqueue.Cause {
	return workqueue.Cause{Source: "pods", Event: "update", Object: "default/web-0", Version: "4711", At: time.Unix(1, 0)}
}

// BenchmarkQueue measures the round of one key through a queue that has no other user.
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

// BenchmarkQueueContended measures the time of a Done. Producers add new keys as fast as they can, and consumers take
// them.
func BenchmarkQueueContended(b *testing.B) {
	for _, priorities := range []int{1, 3} {
		b.Run(fmt.Sprintf("producers=4/consumers=4/priorities=%d", priorities), func(b *testing.B) {
			const producers, consumers = 4, 4
			q := workqueue.New[string](workqueue.Options{})
			keys := make([]string, b.N)
			for i := range keys {
				keys[i] = fmt.Sprintf("default/web-%d", i)
			}
			var producing, consuming sync.WaitGroup
			var done atomic.Int64
			b.ResetTimer()
			for p := range producers {
				producing.Go(func() {
					item := workqueue.Item{Cause: podCause()}
					for i := p; i < len(keys); i += producers {
						item.Priority = i % priorities
						q.AddWith(keys[i], item)
					}
				})
			}
			for range consumers {
				consuming.Go(func() {
					taken := int64(0)
					defer func() { done.Add(taken) }()
					for {
						work, err := q.Get(context.Background())
						if err != nil {
							return
						}
						q.Done(work.Key)
						taken++
					}
				})
			}
			producing.Wait()
			q.ShutDown()
			consuming.Wait()
			if done.Load() != int64(b.N) {
				b.Fatalf("%d keys of %d were done", done.Load(), b.N)
			}
		})
	}
}

// BenchmarkQueuePriorities measures the round of one key through a queue with many waiting keys of several priorities.
func BenchmarkQueuePriorities(b *testing.B) {
	for _, classes := range []int{1, 3, 1000} {
		b.Run(fmt.Sprintf("ready=10000/priorities=%d", classes), func(b *testing.B) {
			q, ctx := workqueue.New[int](workqueue.Options{}), context.Background()
			for i := range 10_000 {
				q.AddWith(i, workqueue.Item{Priority: i % classes})
			}
			b.ReportAllocs()
			item := workqueue.Item{Cause: podCause()}
			for i := 10_000; b.Loop(); i++ {
				item.Priority = i % classes
				q.AddWith(i, item)
				work, err := q.Get(ctx)
				if err != nil {
					b.Fatal(err)
				}
				q.Done(work.Key)
			}
		})
	}
}

// BenchmarkQueueAddAfter adds to a queue with a million delayed keys.
func BenchmarkQueueAddAfter(b *testing.B) {
	const waiting = 1_000_000
	q := workqueue.New[string](workqueue.Options{})
	for i := range waiting {
		q.AddAfter(fmt.Sprintf("default/web-%d", i), time.Hour+time.Duration(i*7919%waiting)*time.Millisecond)
	}
	for _, mode := range []string{"new", "waiting"} {
		b.Run("waiting=1000000/keys="+mode, func(b *testing.B) {
			keys := make([]string, waiting)
			for i := range keys {
				if mode == "new" {
					keys[i] = fmt.Sprintf("other/web-%d", i)
				} else {
					keys[i] = fmt.Sprintf("default/web-%d", i)
				}
			}
			item := workqueue.Item{Cause: podCause()}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				item.After = time.Hour + time.Duration(i*7919%waiting)*time.Millisecond
				q.AddWith(keys[i*7919%waiting], item)
			}
		})
	}
}
