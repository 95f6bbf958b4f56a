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
	start, collections := w.library.Many, w.spec.Resources
	if w.spec.Namespaces > 0 {
		start, collections = w.library.Scoped, w.spec.Namespaces
	}
	if start == nil {
		return ErrUnsupported
	}
	stopProfile, err := w.profile()
	if err != nil {
		return err
	}
	baseline, inUse, before := measure.LiveHeap(), measure.InUse(), measure.Now()
	many, err := start(w.spec)
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
	live, used := measure.LiveHeap(), measure.InUse()
	if err := w.heapProfile(); err != nil {
		return err
	}
	if n, want := many.Len(), collections*w.spec.Objects; n != want {
		return fmt.Errorf("subject: %d objects in the caches and not %d", n, want)
	}
	w.set("RSS MB", float64(rss)/1e6)
	w.set("live MB", (float64(live)-float64(baseline))/1e6)
	w.set("KB/collection", (float64(used)-float64(inUse))/1e3/float64(collections))
	w.set("goroutines", float64(goroutines))
	w.set("connections", float64(connections))
	w.set("wall s", spent.Wall.Seconds())
	w.set("cpu s", spent.CPU.Seconds())
	cancel()
	return <-ended
}
