package subject

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/leatproject/leat/bench/measure"
)

// follower is a running informer with the state of its handler.
type follower struct {
	Informer
	added    int
	synced   chan struct{} // closed after all objects were added
	updated  func(old, new Versioned)
	baseline uint64 // live heap before the start
	resident uint64 // resident memory before the start
	before   measure.Usage
	ended    chan error
	cancel   context.CancelFunc
}

// follow starts an informer and waits until its handler has received every object.
func (w *worker) follow(ctx context.Context) (*follower, error) {
	start := w.library.Informer
	if w.spec.Work == Reconcile {
		start = w.library.Controller
	}
	if start == nil {
		return nil, ErrUnsupported
	}
	objects := w.spec.Objects
	if w.spec.Shards > 0 {
		objects = w.spec.Held
	}
	f := &follower{synced: make(chan struct{}), ended: make(chan error, 1)}
	f.baseline = measure.LiveHeap()
	var err error
	if f.resident, err = measure.RSS(os.Getpid()); err != nil {
		return nil, err
	}
	f.before = measure.Now()
	f.Informer, err = start(w.spec, Hooks{Added: f.add(objects), Updated: func(old, new Versioned) {
		if f.updated != nil {
			f.updated(old, new)
		}
	}})
	if err != nil {
		return nil, err
	}
	ctx, f.cancel = context.WithCancel(ctx)
	go func() { f.ended <- f.Run(ctx) }()
	select {
	case <-f.synced:
		return f, nil
	case err := <-f.ended:
		return nil, err
	}
}

func (f *follower) add(objects int) func() {
	return func() {
		if f.added++; f.added == objects {
			close(f.synced)
		}
	}
}

// stop ends the informer. It keeps the informer alive until then.
func (f *follower) stop() error {
	f.cancel()
	return <-f.ended
}

// sync measures the first list: from before the client exists until the handler has every object.
func (w *worker) sync(ctx context.Context) error {
	stopProfile, err := w.profile()
	if err != nil {
		return err
	}
	f, err := w.follow(ctx)
	if err != nil {
		return err
	}
	spent := measure.Now().Since(f.before)
	stopProfile()
	peak, err := measure.PeakRSS()
	if err != nil {
		return err
	}
	live := measure.LiveHeap()
	if err := w.heapProfile(); err != nil {
		return err
	}
	objects := float64(f.Len())
	w.set("objects", objects)
	w.set("wall s", spent.Wall.Seconds())
	w.set("cpu s", spent.CPU.Seconds())
	w.set("cpu us/object", micros(spent.CPU)/objects)
	w.set("allocs/object", spent.Allocs/objects)
	w.set("peak MB", float64(peak)/1e6)
	w.set("peak B/object", (float64(peak)-float64(f.resident))/objects)
	w.set("live MB", float64(live)/1e6)
	w.set("live B/object", (float64(live)-float64(f.baseline))/objects)
	return f.stop()
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// events measures the events of a watch: from before the first one is sent until the handler has the last one.
func (w *worker) events(ctx context.Context) error {
	f, err := w.follow(ctx)
	if err != nil {
		return err
	}
	var after measure.Usage
	seen, done := 0, make(chan struct{})
	f.updated = func(Versioned, Versioned) {
		if seen++; seen == w.spec.Events {
			after = measure.Now()
			close(done)
		}
	}
	runtime.GC() // collect the garbage of the list before the events are measured
	stopProfile, err := w.profile()
	if err != nil {
		return err
	}
	before := measure.Now()
	if err := w.ready(); err != nil {
		return err
	}
	<-done
	stopProfile()
	spent, events := after.Since(before), float64(w.spec.Events)
	w.set("cpu us/event", micros(spent.CPU)/events)
	w.set("allocs/event", spent.Allocs/events)
	w.set("B/event", spent.Bytes/events)
	w.set("events/s", events/spent.Wall.Seconds())
	return f.stop()
}

// relist measures a list without changes. The runner ends the watch with 410. When the next watch is open, it changes
// one object, which shows the handler that the list is complete.
func (w *worker) relist(ctx context.Context) error {
	f, err := w.follow(ctx)
	if err != nil {
		return err
	}
	told, done := 0, make(chan measure.Usage, 1)
	f.updated = func(old, new Versioned) {
		if old.GetResourceVersion() == new.GetResourceVersion() {
			told++ // of an unchanged object
			return
		}
		done <- measure.Now()
	}
	live := measure.LiveHeap()
	var watch measure.HeapWatch
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- watch.Run(ctx) }()
	before := measure.Now()
	if err := w.ready(); err != nil {
		return err
	}
	spent, objects := (<-done).Since(before), float64(f.Len())
	cancel()
	if err := <-ended; err != nil {
		return err
	}
	w.set("cpu us/object", micros(spent.CPU)/objects)
	w.set("allocs/object", spent.Allocs/objects)
	w.set("B/object", spent.Bytes/objects)
	w.set("live MB", float64(live)/1e6)
	w.set("peak MB", float64(watch.Peak())/1e6)
	w.set("peak/live", float64(watch.Peak())/float64(live))
	w.set("notifications", float64(told))
	return f.stop()
}

// latency records when each change reaches the handler or the reconcile, and the processor time of these changes.
func (w *worker) latency(ctx context.Context) error {
	f, err := w.follow(ctx)
	if err != nil {
		return err
	}
	type arrival struct {
		version string
		at      int64
	}
	arrivals, done := make([]arrival, 0, w.spec.Events), make(chan measure.Usage, 1)
	f.updated = func(_, new Versioned) {
		arrivals = append(arrivals, arrival{new.GetResourceVersion(), time.Now().UnixNano()})
		if len(arrivals) == w.spec.Events {
			done <- measure.Now()
		}
	}
	runtime.GC()
	stopProfile, err := w.profile()
	if err != nil {
		return err
	}
	before := measure.Now()
	if err := w.ready(); err != nil {
		return err
	}
	spent, events := (<-done).Since(before), float64(w.spec.Events)
	stopProfile()
	w.set("cpu us/event", micros(spent.CPU)/events)
	w.set("kernel us/event", micros(spent.Kernel)/events)
	w.report.Arrivals = make(map[string]int64, len(arrivals))
	for _, a := range arrivals {
		w.report.Arrivals[a.version] = a.at
	}
	return f.stop()
}
