package controller

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/workqueue"
)

// Source is where keys come from. For, Owns and Map make sources of informers, Channel and SourceFunc of what they are
// given; anything else that keys can be made of may be one too.
// It corresponds to TypedSource and TypedSyncingSource of controller-runtime, which return while what they started goes
// on.
type Source[K comparable] interface {
	// String names the source in errors and logs.
	String() string

	// Run adds keys to the sink until ctx ends, and calls its Synced once it has added all that were there when it
	// began. It returns when nothing is left of what it started. To return nil before ctx ends is to have no more keys,
	// ever; an error ends the controller. It may be called more than once, at once, with different sinks.
	Run(ctx context.Context, sink *Sink[K]) error

	// NotSynced says why the source is not synced, or nil if it does not know.
	NotSynced() error
}

// keyed is a Source that knows what its keys are the names of; nothing is said by the zero Resource.
type keyed interface{ KeysOf() api.Resource }

// Sink takes the keys of one source of one controller. Its methods may be called from any goroutine.
type Sink[K comparable] struct {
	controller *Controller[K]
	source     Source[K]
	name       string

	synced   chan struct{} // closed by Synced
	done     chan struct{} // closed when the source's Run has returned, or will never be called
	err      error         // why it ended; written before done is closed
	syncOnce sync.Once
	removed  atomic.Bool
	panics   atomic.Int64
	cancel   context.CancelFunc // nil until the source runs; guarded by the controller's lock
}

// Add adds a key to the controller's queue; it never blocks. Once the source is removed it does nothing. An item without
// a cause gets one that names the source.
func (s *Sink[K]) Add(key K, item workqueue.Item) {
	if s.removed.Load() {
		return
	}
	if item.Cause == (workqueue.Cause{}) {
		item.Cause = workqueue.Cause{Source: s.name, Event: eventRequest, Object: formatKey(key), At: time.Now()}
	}
	s.controller.queue.AddWith(key, item)
}

// Synced says that everything that was there when the source began has been added. Calling it again does nothing.
func (s *Sink[K]) Synced() { s.syncOnce.Do(func() { close(s.synced) }) }

// Removed says whether the source was removed, or its controller is ending: nothing that is added counts any more.
func (s *Sink[K]) Removed() bool { return s.removed.Load() }

// contained counts and logs a panic of what the user gave to a source.
func (s *Sink[K]) contained(what, object string, p *PanicError) {
	s.panics.Add(1)
	s.controller.counters.sourcePanics.Add(1)
	s.controller.log.Error("source panicked", zap.String("source", s.name), zap.String("in", what),
		zap.String("key", object), zap.Any("panic", p.Value), zap.ByteString("stack", p.Stack))
}

func (s *Sink[K]) isSynced() bool { return isClosed(s.synced) }

// notSynced says why the source is not synced; nil if it is, or has ended, or does not know.
func (s *Sink[K]) notSynced() (why error) {
	if s.isSynced() || isClosed(s.done) {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			why = recovered(p)
		}
	}()
	return s.source.NotSynced()
}

// Registration is a source that a controller watches. It is to a source what informer.Registration is to a handler.
type Registration struct {
	name   string
	synced <-chan struct{}
	done   <-chan struct{}

	err, notSynced func() error
	remove         func()
}

// Name is what the source's String said.
func (r *Registration) Name() string { return r.name }

// Synced is closed when everything that was there when the source began has been added to the queue. It is never closed
// if the source ends before.
func (r *Registration) Synced() <-chan struct{} { return r.synced }

// NotSynced says why the source is not synced, for who waits and gives up: which informer is not, and what its list failed
// with last. It is nil if the source is synced, has ended, or does not know.
func (r *Registration) NotSynced() error { return r.notSynced() }

// Remove ends the watch: once it has returned none of the source's functions is called anew, and no key is added, but by
// a call in flight on another goroutine. It does not wait for that, so that a source's function may remove its own
// source; after Done nothing comes any more. Keys that were added before stay in the queue. Removing again does nothing.
// Nothing in controller-runtime corresponds to it.
func (r *Registration) Remove() { r.remove() }

// Done is closed when the source has ended and no call of its functions is in flight.
func (r *Registration) Done() <-chan struct{} { return r.done }

// Err is why the source has ended by itself: nil before Done, and after Remove.
func (r *Registration) Err() error { return r.err() }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
