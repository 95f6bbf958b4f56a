package subject

import (
	"context"
	"time"

	"github.com/leatproject/leat/bench/measure"
)

// settle is the time after which a recorder has written what it has received. It writes every half second.
const settle = time.Second

// uptime measures the live heap after a number of events, and again after three times as many.
func (w *worker) uptime(ctx context.Context) error {
	f, err := w.follow(ctx)
	if err != nil {
		return err
	}
	seen, done := 0, make(chan struct{}, 1)
	f.updated = func(Versioned, Versioned) {
		if seen++; seen%w.spec.Events == 0 {
			done <- struct{}{}
		}
	}
	for part := range 3 {
		if err := w.ready(); err != nil {
			return err
		}
		<-done
		<-time.After(settle)
		if part != 1 {
			w.set([]string{"live MB", "", "later MB"}[part], float64(measure.LiveHeap())/1e6)
		}
	}
	if err := w.heapProfile(); err != nil {
		return err
	}
	w.set("growth B/event", (w.report.Metrics["later MB"]-w.report.Metrics["live MB"])*1e6/float64(2*w.spec.Events))
	return f.stop()
}
