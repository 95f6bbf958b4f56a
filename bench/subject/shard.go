package subject

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/leatproject/leat/bench/load"
	"github.com/leatproject/leat/bench/measure"
)

// shard measures the first list and then the events of a collection, or of a part of it. The last event is of an object
// of the part, so the handler receives it in both cases. Events are those that the server has: the client of a part
// receives fewer, or drops some.
func (w *worker) shard(ctx context.Context) error {
	if w.library.Kept == nil {
		return ErrUnsupported
	}
	stopProfile, err := w.profile()
	if err != nil {
		return err
	}
	var received atomic.Int64
	counting := *w
	counting.library.Informer = func(s Spec, h Hooks) (Informer, error) { return w.library.Kept(s, h, "", &received) }
	f, err := counting.follow(ctx)
	if err != nil {
		return err
	}
	spent, listed := measure.Now().Since(f.before), received.Load()
	stopProfile()
	peak, err := measure.PeakRSS()
	if err != nil {
		return err
	}
	live := measure.LiveHeap()
	if err := w.heapProfile(); err != nil {
		return err
	}
	w.set("objects", float64(f.Len()))
	w.set("live MB", float64(live)/1e6)
	w.set("peak MB", float64(peak)/1e6)
	w.set("list cpu s", spent.CPU.Seconds())
	w.set("list MB", float64(listed)/1e6)

	var after measure.Usage
	last, done := strconv.Itoa(load.FirstVersion+w.spec.Objects+w.spec.Events), make(chan struct{})
	f.updated = func(_, new Versioned) {
		if new.GetResourceVersion() == last {
			after = measure.Now()
			close(done)
		}
	}
	runtime.GC() // collect the garbage of the list before the events are measured
	before, listed := measure.Now(), received.Load()
	if err := w.ready(); err != nil {
		return err
	}
	<-done
	spent, events := after.Since(before), float64(w.spec.Events)
	w.set("cpu us/event", micros(spent.CPU)/events)
	w.set("watch MB", float64(received.Load()-listed)/1e6)
	return f.stop()
}
