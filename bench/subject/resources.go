package subject

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/leatproject/leat/bench/measure"
)

// resources measures the informers of many resources: from before the client exists until all have their objects.
func (w *worker) resources(ctx context.Context) error {
	if w.library.Many == nil {
		return ErrUnsupported
	}
	stopProfile, err := w.profile()
	if err != nil {
		return err
	}
	baseline, before := measure.LiveHeap(), measure.Now()
	many, err := w.library.Many(w.spec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- many.Run(ctx) }()
	if err := many.Synced(ctx); err != nil {
		cancel()
		return fmt.Errorf("%w; %w", err, <-ended)
	}
	spent := measure.Now().Since(before)
	stopProfile()
	rss, err := measure.RSS(os.Getpid())
	if err != nil {
		return err
	}
	goroutines := runtime.NumGoroutine()
	connections, err := measure.Sockets()
	if err != nil {
		return err
	}
	live := measure.LiveHeap()
	if err := w.heapProfile(); err != nil {
		return err
	}
	if n, want := many.Len(), w.spec.Resources*w.spec.Objects; n != want {
		return fmt.Errorf("subject: %d objects in the caches and not %d", n, want)
	}
	w.set("RSS MB", float64(rss)/1e6)
	w.set("live MB", (float64(live)-float64(baseline))/1e6)
	w.set("goroutines", float64(goroutines))
	w.set("connections", float64(connections))
	w.set("wall s", spent.Wall.Seconds())
	w.set("cpu s", spent.CPU.Seconds())
	cancel()
	return <-ended
}
