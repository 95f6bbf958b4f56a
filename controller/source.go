package controller

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/workqueue"
)

// Source adds keys to a controller. For, Owns and Map make sources from informers; SourceFunc makes one from a
// function. Users may implement others. It corresponds to TypedSource and TypedSyncingSource of
// controller-runtime, which return while their goroutines go on.
type Source[K comparable] interface {
	// String returns the name of the source in errors and logs.
	String() string

	// Run adds keys to the sink until ctx ends. It calls the sink's Synced once it has added the keys of all objects
	// that existed at the start. It returns when all its goroutines have ended. If it returns nil before ctx ends, the
	// source adds no more keys; an error ends the controller. Run may be called several times, at the same time, with
	// different sinks.
	Run(ctx context.Context, sink *Sink[K]) error

	// NotSynced returns the reason why the source is not synced, or nil if it does not know one.
	NotSynced() error
}

// keyed is a Source that may know the resource of its keys. The zero Resource means unknown.
type keyed interface{ keysOf() api.Resource }

// Sink receives the keys of one source of one controller. Its methods may be called on any goroutine.
type Sink[K comparable] struct {
	controller *Controller[K]
	source     Source[K]
	name       string

	synced   chan struct{} // closed by Synced
	done     chan struct{} // closed when the source's Run has returned, or will never be called
	err      error         // why the source ended; written before done is closed
	syncOnce sync.Once
	removed  atomic.Bool
	panics   atomic.Int64
	cancel   context.CancelFunc // nil until the source runs; guarded by the controller's lock
}

// Add adds a key to the controller's queue. It never blocks. After the source was removed, it does nothing. If the item
// has no cause, Add makes one that names the source.
func (s *Sink[K]) Add(key K, item workqueue.Item) {
	if s.removed.Load() {
		return
	}
	if item.Cause == (workqueue.Cause{}) {
		item.Cause = workqueue.Cause{Source: s.name, Event: eventRequest, Object: formatKey(key), At: time.Now()}
	}
	s.controller.queue.AddWith(key, item)
}

// Synced tells the controller that the keys of all objects that existed at the start have been added. Further calls do
// nothing.
func (s *Sink[K]) Synced() { s.syncOnce.Do(func() { close(s.synced) }) }

// Removed reports whether the source was removed or its controller is ending. Then the sink ignores all keys.
func (s *Sink[K]) Removed() bool { return s.removed.Load() }

// contained counts and logs a panic of a user's function in a source.
func (s *Sink[K]) contained(what, object string, p *api.PanicError) {
	s.panics.Add(1)
	s.controller.counters.sourcePanics.Add(1)
	s.controller.log.Error("source panicked", zap.String("source", s.name), zap.String("in", what),
		zap.String("key", object), zap.Any("panic", p.Value), zap.ByteString("stack", p.Stack))
}

func (s *Sink[K]) isSynced() bool { return runstate.IsClosed(s.synced) }

// notSynced returns the reason why the source is not synced. It returns nil if the source is synced, has ended, or does
// not know.
func (s *Sink[K]) notSynced() (why error) {
	if s.isSynced() || runstate.IsClosed(s.done) {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			why = api.Recovered(p)
		}
	}()
	why = s.source.NotSynced()
	if errors.Is(why, errProcessing) && !s.controller.hasBegun() {
		why = errNotBegun
	}
	return why
}

// errNotBegun is the reason of a source that only waits for its controller.
var errNotBegun = errors.New("the controller has not started")

// Registration is a source that a controller watches. It is for a source what informer.Registration is for a handler.
type SourceRegistration struct {
	name   string
	synced <-chan struct{}
	done   <-chan struct{}

	err, notSynced func() error
	remove         func()
}

// Name returns the result of the source's String method.
func (r *SourceRegistration) Name() string { return r.name }

// Synced returns a channel that is closed when the keys of all objects that existed at the start are in the queue. If
// the source ends earlier, the channel is never closed.
func (r *SourceRegistration) Synced() <-chan struct{} { return r.synced }

// NotSynced returns the reason why the source is not synced, for callers that stop waiting: the informer that is not
// synced, and the last error of its list. It returns nil if the source is synced, has ended, or does not know.
func (r *SourceRegistration) NotSynced() error { return r.notSynced() }

// Remove ends the watch. After Remove has returned, the controller starts no call of the source's functions and adds no
// keys, except in a call that is in flight on another goroutine. Remove does not wait for that call, so a source's
// function may remove its own source. After Done is closed, no call is in flight. Keys that were added before stay in
// the queue. A second Remove does nothing. controller-runtime has nothing like it.
func (r *SourceRegistration) Remove() { r.remove() }

// Done returns a channel that is closed when the source has ended and no call of its functions is in flight.
func (r *SourceRegistration) Done() <-chan struct{} { return r.done }

// Err returns the error with which the source ended by itself. It is nil before Done is closed, and after Remove.
func (r *SourceRegistration) Err() error { return r.err() }
