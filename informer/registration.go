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

// Registration is a handler of an informer. AddEventHandler and Subscribe return one. Its methods may be called on any
// goroutine, also by the handler itself. Only Remove may wait, at most for a batch that is being applied to the cache.
//
// Other packages may implement it, for example to register one function with several informers. An implementation that
// wraps a Registration embeds it and replaces the methods that differ. It corresponds to
// cache.ResourceEventHandlerRegistration of client-go.
type Registration interface {
	// Name returns HandlerOptions.Name, or the default that replaced an empty name. It stays the same.
	Name() string
	// Synced returns a channel that is closed when the handler has been called with every object of its initial list and
	// these calls have returned or panicked. If the handler is removed or the informer stops before, the channel is
	// never closed. Each call returns the same channel.
	Synced() <-chan struct{}
	// Done returns a channel that is closed when the handler has been removed or the informer has stopped, and no call
	// of the handler is in flight. No call starts afterwards. Each call returns the same channel.
	Done() <-chan struct{}
	// Remove ends the registration. No call of the handler starts after Remove has returned, except a call that was
	// about to start; pending notifications are dropped. Remove does not wait for a call in flight, so a handler may
	// remove itself; Done does. Removing again has no effect.
	Remove()
	// Pending returns the number of notifications that the handler has not been called with. It is 0 after Remove. It is
	// an estimate for a coalescing handler that is behind, because its notifications are merged when it gets to them.
	Pending() int
	// Panics returns the number of calls that ended in a panic. It never decreases.
	Panics() int64
	// StuckSince returns when the call in flight began if it takes longer than Options.StuckAfter, and otherwise the
	// zero time.
	StuckSince() time.Time
}

// registration is the Registration of one handler with one informer.
type registration[T api.Object] struct {
	informer *Informer[T]
	listener *processListener[T]
}

var _ Registration = registration[api.Object]{}

func (r registration[T]) Name() string            { return r.listener.name }
func (r registration[T]) Synced() <-chan struct{} { return r.listener.synced }
func (r registration[T]) Done() <-chan struct{}   { return r.listener.done }
func (r registration[T]) Remove()                 { r.informer.leave(r.listener) }
func (r registration[T]) Pending() int            { return r.listener.pending() }
func (r registration[T]) Panics() int64           { return r.listener.panics.Load() }
func (r registration[T]) StuckSince() time.Time   { return r.listener.current.stuckSince() }

// AddEventHandler registers a handler, before Run or while it runs; a late one is told of every object in the cache as
// an addition of its initial list, and then of the changes, each exactly once. It does not block, and may be called
// from a handler. It returns ErrStopped once Run has ended.
func (i *Informer[T]) AddEventHandler(h ResourceEventHandler[T], o HandlerOptions) (Registration, error) {
	if h == nil {
		panic("informer: AddEventHandler needs a handler")
	}
	if o.Name == "" {
		o.Name = handlerName(h)
	}
	return i.Subscribe(func(n Notification[T]) { dispatch(h, n) }, o)
}

// Subscribe is AddEventHandler for a function that takes a notification whole, with the time at which it was received.
func (i *Informer[T]) Subscribe(f func(Notification[T]), o HandlerOptions) (Registration, error) {
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
	return registration[T]{i, l}, nil
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
