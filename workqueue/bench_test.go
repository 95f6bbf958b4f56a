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

// BenchmarkQueueContended is the time of a Done: producers add keys of their own in turn, as fast as they can, while
// consumers take them.
func BenchmarkQueueContended(b *testing.B) {
	for _, priorities := range []int{1, 3} {
		b.Run(fmt.Sprintf("producers=4/consumers=4/priorities=%d", priorities), func(b *testing.B) {
			const producers, consumers, keysEach = 4, 4, 1000
			q, ctx := workqueue.New[string](workqueue.Options{}), context.Background()
			var producing, consuming sync.WaitGroup
			var enough atomic.Bool
			for p := range producers {
				keys := make([]string, keysEach)
				for i := range keys {
					keys[i] = fmt.Sprintf("ns-%d/web-%d", p, i)
				}
				producing.Go(func() {
					item := workqueue.Item{Cause: podCause()}
					for i := 0; !enough.Load(); i++ {
						item.Priority = i % priorities
						q.AddWith(keys[i%len(keys)], item)
					}
				})
			}
			b.ResetTimer()
			for c := range consumers {
				consuming.Go(func() {
					for range (b.N + c) / consumers {
						work, err := q.Get(ctx)
						if err != nil {
							b.Error(err)
							return
						}
						q.Done(work.Key)
					}
				})
			}
			consuming.Wait()
			b.StopTimer()
			enough.Store(true)
			producing.Wait()
		})
	}
}

// BenchmarkQueuePriorities is the round of one key through a queue in which many of several priorities wait.
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

// BenchmarkQueueAddAfter adds to a queue in which a million keys wait.
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
