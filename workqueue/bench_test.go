package workqueue_test

import (
	"context"
	"fmt"
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
