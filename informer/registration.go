package informer

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/leatproject/leat/api"
)

// HandlerOptions of one handler. The zero value is what most want.
type HandlerOptions struct {
	// Name stands in logs and in Status. Empty names the handler after its type or function.
	Name string
	// ResyncPeriod is how often this handler is told of every object again. 0 is the informer's own period, and negative
	// is never; anything shorter than a second is a second. A handler that joins a running informer is not told more
	// often than the most impatient of those that it was started with, and never if none of those asked for it.
	ResyncPeriod time.Duration
	// Coalesce keeps, for a handler that is behind, only the newest state of each object: what it has still to be told
	// is bounded by the number of objects, and it may miss states in between, and objects that came and went. Not for
	// handlers that count events, such as expectations.
	Coalesce bool
}

// Registration is a handler of an informer.
// It corresponds to cache.ResourceEventHandlerRegistration of client-go.
type Registration struct {
	name       string
	synced     <-chan struct{}
	done       <-chan struct{}
	pending    func() int
	panics     func() int64
	stuckSince func() time.Time
	remove     func()
}

// Name is that of HandlerOptions, or the one given instead.
func (r *Registration) Name() string { return r.name }

// Synced is closed when the handler has been called with every object of the initial list, and those calls have
// returned or panicked. It is never closed if the handler is removed, or the informer stops, before.
func (r *Registration) Synced() <-chan struct{} { return r.synced }

// Pending is how many notifications the handler has not been called with. For a coalescing handler that is behind it is
// an estimate, as what it will be told is settled when it gets to it.
func (r *Registration) Pending() int { return r.pending() }

// Panics is how many calls of the handler ended in a panic.
func (r *Registration) Panics() int64 { return r.panics() }

// StuckSince returns when the call in flight began if it takes longer than Options.StuckAfter, and otherwise the zero
// time.
func (r *Registration) StuckSince() time.Time { return r.stuckSince() }

// Remove ends the registration: no call starts after it returns, and what is pending is dropped. It does not wait for a
// call in flight, or one that is being made at that moment, so a handler may remove itself; see Done. Removing again does
// nothing.
func (r *Registration) Remove() { r.remove() }

// Done is closed when the handler has been removed, or the informer has stopped, and no call is in flight.
func (r *Registration) Done() <-chan struct{} { return r.done }

// AddEventHandler registers a handler, before Run or while it runs; a late one is told of every object in the cache as
// an addition of its initial list, and then of the changes, each exactly once. It does not block, and may be called
// from a handler. It returns ErrStopped once Run has ended.
func (i *Informer[T]) AddEventHandler(h ResourceEventHandler[T], o HandlerOptions) (*Registration, error) {
	if h == nil {
		panic("informer: AddEventHandler needs a handler")
	}
	if o.Name == "" {
		o.Name = handlerName(h)
	}
	return i.Subscribe(func(n Notification[T]) { dispatch(h, n) }, o)
}

// Subscribe is AddEventHandler for a function that takes a notification whole, with the time at which it was received.
func (i *Informer[T]) Subscribe(f func(Notification[T]), o HandlerOptions) (*Registration, error) {
	if f == nil {
		panic("informer: Subscribe needs a function")
	}
	if o.Name == "" {
		o.Name = handlerName(f)
	}
	desired := o.ResyncPeriod
	if desired == 0 {
		desired = i.o.ResyncPeriod
	}
	l := newProcessListener(o.Name, f, o.Coalesce, i.watchdog, i.log)
	if err := i.join(l, desired); err != nil {
		return nil, fmt.Errorf("add handler %s of %s: %w", o.Name, i.Resource(), err)
	}
	return &Registration{
		name: l.name, synced: l.synced, done: l.done,
		pending: l.pending, panics: l.panics.Load, stuckSince: l.current.stuckSince, remove: func() { i.leave(l) },
	}, nil
}

// join makes a listener one of those that every batch is told to.
func (i *Informer[T]) join(l *processListener[T], desiredResync time.Duration) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.life == ended {
		return ErrStopped
	}
	l.resync.period = resyncPeriod(desiredResync, i.resyncCheck, i.life == running)
	i.listeners = append(i.listeners, l)
	if isClosed(i.synced) {
		l.push(&group[T]{replay: i.indexer.Snapshot(), at: time.Now(), completes: true})
	}
	if i.life == running {
		i.launch(l)
	}
	return nil
}

// calls returns the calls of all listeners, for the watchdog.
func (i *Informer[T]) calls() []*inCall {
	i.mu.Lock()
	defer i.mu.Unlock()
	calls := make([]*inCall, 0, len(i.listeners))
	for _, l := range i.listeners {
		calls = append(calls, &l.current)
	}
	return calls
}

// leave forgets a listener. One that never ran is done at once.
func (i *Informer[T]) leave(l *processListener[T]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.listeners, l)
	if at < 0 {
		return
	}
	i.listeners = slices.Delete(i.listeners, at, at+1)
	l.remove()
	if i.life == created {
		close(l.done)
	}
}

// leaveUnless makes a listener leave whose handler has ended its goroutine, as t.FailNow does in a test: nobody would
// empty its backlog any more. When it is ctx that has ended there is nothing more to come.
func (i *Informer[T]) leaveUnless(ctx context.Context, l *processListener[T]) {
	if ctx.Err() == nil {
		i.leave(l)
	}
}

// handlerName names a handler after its type, or after the function that it is.
func handlerName(h any) string {
	v := reflect.ValueOf(h)
	if v.Kind() == reflect.Func {
		return runtime.FuncForPC(v.Pointer()).Name()
	}
	return v.Type().String()
}

var _ ResourceEventHandler[api.Object] = HandlerFuncs[api.Object]{}
