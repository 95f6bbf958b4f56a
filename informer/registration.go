package informer

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer/internal/slowcalls"
	"github.com/leatproject/leat/internal/runstate"
)

// HandlerOptions are the options of one handler. The zero value is a good default.
type HandlerOptions struct {
	// Name identifies the handler in logs and in Status. An empty Name is replaced by the name of the handler's type or
	// function.
	Name string
	// ResyncPeriod is the time between two resyncs of this handler. 0 means the period of the informer, and a negative
	// value means no resyncs. A period below a second is raised to a second. It counts from the start of Run, or from
	// the registration if that is later.
	ResyncPeriod time.Duration
	// Coalesce merges the pending changes of each object while the handler is behind. The backlog is then bounded by
	// the number of objects. The handler may miss intermediate states, and objects that were created and deleted
	// meanwhile. Handlers that count changes, such as expectations, must not use it.
	Coalesce bool
	// IdentityOnly says that the handler reads only the keys, the UIDs and the versions of the objects. If the informer
	// keeps packed objects (Options.Hold), it does not decode them for the handler: their other fields are empty, and
	// the handler gets the same two objects again and again, so it must not keep them after its return.
	IdentityOnly bool
	// NonBlocking says that the handler always returns at once: it does not wait, and it does not end its goroutine.
	// The informer may then call it on the goroutine that applies a small batch, which saves the time to wake another
	// goroutine. While such a handler runs, the informer receives nothing.
	NonBlocking bool
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
	// Synced returns a channel that is closed when the handler has been called with every object of its initial list
	// and these calls have returned or panicked. If the handler is removed or the informer stops before, the channel is
	// never closed. Each call returns the same channel.
	Synced() <-chan struct{}
	// Done returns a channel that is closed when the handler has been removed or the informer has stopped, and no call
	// of the handler is in flight. No call starts afterwards. Each call returns the same channel.
	Done() <-chan struct{}
	// Remove ends the registration. No call of the handler starts after Remove has returned, except a call that was
	// about to start; pending notifications are dropped. Remove does not wait for a call in flight, so a handler may
	// remove itself. To wait for the call, use Done. Removing again has no effect.
	Remove()
	// Pending returns the number of notifications that the handler has not been called with. It is 0 after Remove. It
	// is an estimate for a coalescing handler that is behind, because its changes are merged when it gets to them.
	Pending() int
	// Panics returns the number of calls that ended in a panic. It never decreases.
	Panics() int64
	// StuckSince returns when the call in flight began if it takes longer than Options.StuckAfter, and otherwise the
	// zero time.
	StuckSince() time.Time
}

// registration is the Registration of one handler with one informer.
type registration[T api.Object] struct {
	pipeline *pipeline[T]
	listener *processListener[T]
}

func (r registration[T]) Name() string            { return r.listener.name }
func (r registration[T]) Synced() <-chan struct{} { return r.listener.synced }
func (r registration[T]) Done() <-chan struct{}   { return r.listener.done }
func (r registration[T]) Remove()                 { r.pipeline.removeListener(r.listener) }
func (r registration[T]) Pending() int            { return r.listener.pending() }
func (r registration[T]) Panics() int64           { return r.listener.panics.Load() }
func (r registration[T]) StuckSince() time.Time   { return r.listener.current.StuckSince() }

// AddEventHandler registers a handler, before Run or while it runs. A handler that joins late first gets an Add for
// every cached object, as its initial list, and then each later change exactly once. AddEventHandler may be called from
// a handler. It waits at most for a batch that is being applied. It returns ErrStopped when Run has ended, and panics
// if h is nil.
func (i *Informer[T]) AddEventHandler(h ResourceEventHandler[T], o HandlerOptions) (Registration, error) {
	if h == nil {
		panic("informer: AddEventHandler needs a handler")
	}
	if o.Name == "" {
		o.Name = handlerName(h)
	}
	return i.Subscribe(func(n api.Change[T]) { dispatch(h, n) }, o)
}

// Subscribe is AddEventHandler for a function that takes whole changes, each with the time when it was received.
func (i *Informer[T]) Subscribe(f func(api.Change[T]), o HandlerOptions) (Registration, error) {
	if f == nil {
		panic("informer: Subscribe needs a function")
	}
	if o.Name == "" {
		o.Name = handlerName(f)
	}
	r, err := i.pipeline.subscribe(f, o)
	if err != nil {
		return nil, fmt.Errorf("add handler %s of %s: %w", o.Name, i.Resource(), err)
	}
	return r, nil
}

func (p *pipeline[T]) subscribe(f func(api.Change[T]), o HandlerOptions) (Registration, error) {
	desired := o.ResyncPeriod
	if desired == 0 {
		desired = p.o.ResyncPeriod
	}
	l := newProcessListener(o, f, p.watchdog, zap.NewNop())
	l.crash, l.traces = p.o.CrashOnPanic, &p.traces
	if err := p.addListener(l, desired); err != nil {
		return nil, err
	}
	return registration[T]{p, l}, nil
}

// addListener registers a listener, which receives every later batch.
func (p *pipeline[T]) addListener(l *processListener[T], desiredResync time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life == runstate.Ending {
		return ErrStopped
	}
	l.useLogger(p.log)
	l.resync = newResyncTimer(desiredResync)
	p.handlers.all = append(p.handlers.all, l)
	if !p.heardAt.IsZero() {
		l.push(&group[T]{replay: p.indexer.Snapshot(), at: time.Now(), completes: runstate.IsClosed(p.events.synced)})
		l.wakeUp()
	}
	if p.life == runstate.Running {
		now := time.Now()
		p.handlers.start(l, now)
		p.scheduleResync(now)
	}
	return nil
}

// calls returns the calls of all listeners, for the watchdog.
func (p *pipeline[T]) calls() []*slowcalls.Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := make([]*slowcalls.Call, 0, len(p.handlers.all))
	for _, l := range p.handlers.all {
		calls = append(calls, &l.current)
	}
	return calls
}

// removeListener removes a listener and closes its done channel if it never ran.
func (p *pipeline[T]) removeListener(l *processListener[T]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.handlers.all, l)
	if at < 0 {
		return
	}
	p.handlers.all = slices.Delete(p.handlers.all, at, at+1)
	l.remove()
	if p.life == runstate.Created {
		close(l.done)
	}
}

// removeEnded removes a listener whose handler has ended its goroutine, as t.FailNow does in a test: its backlog would
// grow without a reader. It does nothing if ctx has ended, because no batch follows.
func (p *pipeline[T]) removeEnded(ctx context.Context, l *processListener[T]) {
	if ctx.Err() == nil {
		p.removeListener(l)
	}
}

// handlerName returns the name of a handler's type, or of the function that it is.
func handlerName(h any) string {
	v := reflect.ValueOf(h)
	if v.Kind() == reflect.Func {
		return runtime.FuncForPC(v.Pointer()).Name()
	}
	return v.Type().String()
}
