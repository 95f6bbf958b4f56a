package informer

import (
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// ObservedChange is a change in the cache, and the times of its way there. Its field At is when it was received.
type ObservedChange struct {
	api.Change[api.Object]
	Popped time.Time // when the informer took the batch with the change from the DeltaFIFO
	Stored time.Time // when the batch was in the cache
}

// applied is a batch in the cache. The times are zero if the first observer came after them.
type applied[T any] struct {
	deltafifo.Batch[T]
	popped, stored time.Time
}

// changeTime returns the time for the observers of changes. Without an observer it returns zero and reads no clock.
func (p *pipeline[T]) changeTime() time.Time {
	if p.observers.changes.Empty() {
		return time.Time{}
	}
	return time.Now()
}

// tellChanges tells the observers of a batch. One that came while the batch was applied gets the batch too, because the
// cache did not have it when the observer was added.
func (p *pipeline[T]) tellChanges(batch deltafifo.Batch[T], popped, stored time.Time) {
	if p.observers.changes.Empty() {
		return
	}
	if stored.IsZero() {
		stored = time.Now()
	}
	if popped.IsZero() {
		popped = stored
	}
	p.observers.changes.Tell(applied[T]{batch, popped, stored})
}

// ObserveChanges calls f with every later change of the objects for whose keys wanted returns true, when the change is
// in the cache. Resyncs are not changes. The next batch waits for both functions. The objects are those of the cache
// and must not be changed. The returned function ends the calls. It is for programs that show objects of any type; a
// handler gets the same changes with their type, and a replay.
func (i *Informer[T]) ObserveChanges(wanted func(api.Key) bool, f func(ObservedChange)) (stop func()) {
	return i.pipeline.observeChanges(wanted, f)
}

func (p *pipeline[T]) observeChanges(wanted func(api.Key) bool, f func(ObservedChange)) (stop func()) {
	return p.addObserver(wanted, widen, f)
}

func (v view[T, H]) observeChanges(wanted func(api.Key) bool, f func(ObservedChange)) (stop func()) {
	return v.addObserver(wanted, func(c api.Change[H]) api.Change[api.Object] { return widen(showChange(c, v.form.Share)) }, f)
}

func (p *pipeline[T]) addObserver(
	wanted func(api.Key) bool, show func(api.Change[T]) api.Change[api.Object], f func(ObservedChange),
) (stop func()) {
	return p.observers.changes.Add(func(b applied[T]) {
		for _, object := range b.Objects {
			if !wanted(object.Key) {
				continue
			}
			for _, c := range object.Changes {
				f(ObservedChange{show(c), b.popped, b.stored})
			}
		}
	})
}

// widen returns a change without the type of its object.
func widen[T api.Object](c api.Change[T]) api.Change[api.Object] {
	wide := api.Change[api.Object]{
		Type: c.Type, FinalStateUnknown: c.FinalStateUnknown, InitialList: c.InitialList, Resync: c.Resync, At: c.At, Object: c.Object,
	}
	if c.Type == api.Updated {
		wide.Old = c.Old
	}
	return wide
}

// Delivery is a call of a handler that has returned.
type Delivery struct {
	Handler string // its name; see HandlerOptions
	Type    api.ChangeType
	Key     api.Key
	Version string // of the object in the notification
	Began   time.Time
	Took    time.Duration
}

// delivered is a call of a handler. Observers get it before the call, without times, to say that they want it, and
// after the call if one of them does.
type delivered[T any] struct {
	handler string
	change  api.Change[T]
	wanted  *bool
	began   time.Time
	took    time.Duration
}

// ObserveDeliveries calls f after every later call of a handler with an object for whose key wanted returns true, both
// before and after the call. Resyncs do not count. Both functions run on the goroutine of the handler, whose next call
// waits for them, so they may run concurrently. The returned function ends the calls.
func (i *Informer[T]) ObserveDeliveries(wanted func(api.Key) bool, f func(Delivery)) (stop func()) {
	return i.pipeline.observeDeliveries(wanted, f)
}

func (p *pipeline[T]) observeDeliveries(wanted func(api.Key) bool, f func(Delivery)) (stop func()) {
	return p.observers.deliveries.Add(func(d delivered[T]) {
		key := api.KeyOf(d.change.Object)
		switch {
		case d.change.Resync || !wanted(key):
		case d.began.IsZero():
			*d.wanted = true
		default:
			f(Delivery{d.handler, d.change.Type, key, d.change.Object.GetResourceVersion(), d.began, d.took})
		}
	})
}

// observedCall is call, for observers of deliveries. It reads the clock only for an object that somebody observes,
// because that may take as long as the call.
func (l *processListener[T]) observedCall(n api.Change[T]) {
	l.observed = false
	d := delivered[T]{handler: l.name, change: n, wanted: &l.observed}
	l.deliveries.Tell(d)
	if !l.observed {
		l.call(n)
		return
	}
	d.began = time.Now()
	l.call(n)
	d.took = time.Since(d.began)
	l.deliveries.Tell(d)
}
