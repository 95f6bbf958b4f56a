package informer

import (
	"slices"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
)

// Trace is a set of functions that see the stages of an informer at work, for metrics, pages and logs. Any of them may
// be nil. It corresponds to httptrace.ClientTrace of the standard library.
//
// Change and Batch run on the goroutine that applies batches. The next batch waits for them, and so does the reflector
// if it applies a single change itself, so they must not block unless MayBlock is set. Delivery runs on the goroutine
// that calls the handler. The next call of this handler waits for it. Handlers with HandlerOptions.NonBlocking may be
// called by the goroutine that applies batches, and Delivery then runs there too.
//
// The functions may use the informer, but must not wait for it.
type Trace struct {
	// MayBlock reports that Change or Batch may block. Then the goroutine of Run applies every batch, and the reflector
	// receives events meanwhile. The only exception is a batch that the reflector is applying when the trace is added.
	// Price: each single change costs a switch of goroutines; see docs/decisions/0025.
	MayBlock bool
	// Wanted selects the keys of the objects that Change and Delivery report. Nil selects all. It runs where they run,
	// for Delivery before and after the call of the handler.
	Wanted func(api.Key) bool
	// Change is called with each change of a wanted object when the whole batch is in the cache. Resyncs and silent
	// removals of scopes are not reported. The cache shares the objects, so they must not be changed.
	Change func(TracedChange)
	// Batch is called when a batch is in the cache, after Change has got its changes. During the call,
	// Informer.Snapshot returns the state right after the batch.
	Batch func(TracedBatch)
	// Delivery is called after each call of a handler with a wanted object. A resync does not count.
	Delivery func(Delivery)
}

// TracedBatch describes a batch that is in the cache.
type TracedBatch struct {
	Objects     int       // the objects that changed; 0 if the batch has only a version, a resync, or a note
	InitialList bool      // the batch completes the first list
	Received    time.Time // when the first news in the batch was received
}

// TracedChange is a change in the cache, and the times of its way there. At is when it was received.
type TracedChange struct {
	api.Change[api.Object]
	Popped time.Time // when the informer took the batch with the change from the DeltaFIFO
	Stored time.Time // when the batch was in the cache
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

// Trace calls the functions of t from now on, until stop is called. They also get a batch that is being applied, if its
// traces have not run yet. Trace may be called at any time. stop does not wait for calls in flight. Without a trace,
// each stage costs one atomic load.
func (i *Informer[T]) Trace(t Trace) (stop func()) { return i.pipeline.trace(t) }

func (p *pipeline[T]) trace(t Trace) (stop func()) { return p.traces.Add(t) }

func (t *Trace) wants(key api.Key) bool { return t.Wanted == nil || t.Wanted(key) }

// flush applies what the reflector has received, or leaves it to Run if a trace may block.
func (p *pipeline[T]) flush(more bool) {
	process := p.process
	for _, t := range p.traces.All() {
		if t.MayBlock {
			process = nil
		}
	}
	p.fifo.Flush(process, more)
}

// traceTime returns the time if a trace reports changes. Otherwise it returns zero and reads no clock.
func (p *pipeline[T]) traceTime() time.Time {
	for _, t := range p.traces.All() {
		if t.Change != nil {
			return time.Now()
		}
	}
	return time.Time{}
}

// tell reports a batch. popped and stored are zero if there was no trace of changes at that time.
func (p *pipeline[T]) tell(b deltafifo.Batch[T], popped, stored time.Time) {
	for _, t := range p.traces.All() {
		if t.Change != nil {
			if stored.IsZero() {
				stored = time.Now()
			}
			if popped.IsZero() {
				popped = stored
			}
			for _, object := range b.Objects {
				if !t.wants(object.Key) {
					continue
				}
				for _, c := range object.Changes {
					t.Change(TracedChange{showChange(c, untyped[T]), popped, stored})
				}
			}
		}
		if t.Batch != nil {
			t.Batch(TracedBatch{len(b.Objects), b.InitialList, b.Since})
		}
	}
}

func untyped[T api.Object](object T) api.Object { return object }

// tracedCall is call with at least one trace. It reads the clock only for an object that a trace wants, because that
// may take as long as the call.
func (l *processListener[T]) tracedCall(n api.Change[T]) {
	key := api.KeyOf(n.Object)
	if n.Resync || !slices.ContainsFunc(l.traces.All(), func(t *Trace) bool { return t.Delivery != nil && t.wants(key) }) {
		l.call(n)
		return
	}
	began := time.Now()
	l.call(n)
	d := Delivery{l.name, n.Type, key, n.Object.GetResourceVersion(), began, time.Since(began)}
	for _, t := range l.traces.All() {
		if t.Delivery != nil && t.wants(key) {
			t.Delivery(d)
		}
	}
}
