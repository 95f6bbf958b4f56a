package informer

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer/internal/slowcalls"
	"github.com/leatproject/leat/internal/hooks"
)

// processListener is the backlog of one handler, and the goroutine that calls the handler with each of its
// notifications. The name is that of client-go's processorListener, which needs two goroutines and channels between
// them.
type processListener[T api.Object] struct {
	name        string
	handle      func(api.Change[T])
	log         *zap.Logger
	coalesce    bool
	crash       bool // see Options.CrashOnPanic
	nonBlocking bool // process may call the handler, instead of the listener's goroutine
	newBacklog  func() backlog[T]
	traces      *hooks.Set[Trace] // of the informer
	resync      resyncTimer       // guarded by the informer's lock
	// take empties the backlog. ended reports whether no call may start. Both are set when the listener starts.
	take  func(*processListener[T]) []*group[T]
	ended func() bool

	wake    chan struct{} // has one element when the backlog may have grown
	stop    chan struct{} // closed by remove
	synced  chan struct{} // closed when the initial list is delivered
	done    chan struct{} // closed when no call is in flight and no call will start
	removed atomic.Bool
	panics  atomic.Int64
	// delivering is the number of notifications that were taken from the backlog and are not delivered yet.
	delivering atomic.Int64

	mu      sync.Mutex // guards the field below
	backlog backlog[T]

	delivery sync.Mutex // held while the handler may be called, and when the listener has ended
	// The fields below belong to the goroutine that holds delivery.
	sampler slowcalls.Sampler
	current slowcalls.Call
}

func newProcessListener[T api.Object](
	o HandlerOptions, handle func(api.Change[T]), dog *slowcalls.Watchdog, log *zap.Logger,
) *processListener[T] {
	l := &processListener[T]{
		name: o.Name, handle: handle, nonBlocking: o.NonBlocking, traces: new(hooks.Set[Trace]),
		coalesce: o.Coalesce, newBacklog: func() backlog[T] { return newBacklog[T](o.Coalesce) },
		wake: make(chan struct{}, 1), stop: make(chan struct{}), synced: make(chan struct{}), done: make(chan struct{}),
		backlog: newBacklog[T](o.Coalesce), current: slowcalls.Call{Watchdog: dog},
	}
	l.useLogger(log)
	l.current.Report = l.reportLong
	return l
}

// useLogger sets the logger. It must be called before run.
func (l *processListener[T]) useLogger(log *zap.Logger) {
	l.log = log.With(zap.String("handler", l.name))
}

// push appends a group to the backlog and returns the length of the backlog. The informer's lock is held, so that all
// listeners get the groups in one order.
func (l *processListener[T]) push(g *group[T]) (pending int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backlog.push(g)
	return l.backlog.len()
}

// wakeUp makes the listener's goroutine deliver the backlog.
func (l *processListener[T]) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *processListener[T]) pending() int {
	if l.removed.Load() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.backlog.len() + int(l.delivering.Load())
}

// swap replaces the backlog by an empty one and returns the old one.
func (l *processListener[T]) swap() backlog[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.backlog
	l.backlog = l.newBacklog()
	l.delivering.Store(int64(taken.len()))
	return taken
}

// remove ends the listener and drops its backlog. Otherwise a stuck handler, or the owner of a registration, would keep
// the objects of the backlog in memory.
func (l *processListener[T]) remove() {
	if l.removed.CompareAndSwap(false, true) {
		l.swap()
		close(l.stop)
	}
}

// start sets what run and deliverAll need, until ctx ends.
func (l *processListener[T]) start(ctx context.Context, take func(*processListener[T]) []*group[T]) {
	l.take = take
	l.ended = func() bool { return l.removed.Load() || ctx.Err() != nil }
}

// run delivers notifications until the listener is removed or ctx ends.
func (l *processListener[T]) run(ctx context.Context) {
	defer close(l.done)
	defer l.delivery.Lock() // waits for a call by process, and prevents the next
	for {
		select {
		case <-l.wake:
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		}
		l.delivery.Lock()
		l.deliverAll()
	}
}

// deliverAll takes the backlog and delivers it. It releases the delivery lock, which the caller has taken, even if a
// handler ends the goroutine.
func (l *processListener[T]) deliverAll() {
	defer l.delivery.Unlock()
	defer l.current.End()
	groups := l.take(l)
	for i, g := range groups {
		if !l.deliver(g) {
			return
		}
		groups[i] = nil // the garbage collector may free a delivered group before the others are delivered
	}
}

// deliver calls the handler for each notification of g. It reports whether the listener goes on.
func (l *processListener[T]) deliver(g *group[T]) bool {
	for n := range g.all() {
		if l.ended() {
			return false
		}
		l.current.Next()
		pending := l.delivering.Add(-1)
		if len(l.traces.All()) == 0 {
			l.call(n)
		} else {
			l.tracedCall(n)
		}
		if pending >= slowcalls.Pending && l.sampler.Count() {
			l.measure(pending)
		}
	}
	if g.completes && !l.ended() {
		close(l.synced)
	}
	return true
}

// call calls the handler and recovers its panic, unless the panic is to end the process. The notification counts as
// delivered.
func (l *processListener[T]) call(n api.Change[T]) {
	defer func() {
		if l.crash {
			return
		}
		if p := recover(); p != nil {
			l.panics.Add(1)
			l.log.Error("handler panicked", zap.Any("panic", p), zap.String("key", api.FormatKey(api.KeyOf(n.Object))),
				zap.ByteString("stack", debug.Stack()))
		}
	}()
	l.handle(n)
}

// measure logs a warning if the handler is slow. It is called only while the handler is far behind.
func (l *processListener[T]) measure(pending int64) {
	if took, warn := l.sampler.Measure(time.Now()); warn {
		l.log.Warn("handler is slow", zap.Duration("took", took), zap.Int64("count", pending))
	}
}

// reportLong logs that a call takes longer than StuckAfter, or that such a call has returned.
func (l *processListener[T]) reportLong(what string, took time.Duration) {
	l.log.Warn(what, zap.Duration("took", took), zap.Int("pending", l.pending()))
}

// takeBacklog empties the backlog of l and returns its groups.
func (p *pipeline[T]) takeBacklog(l *processListener[T]) []*group[T] {
	taken, snapshot := p.takeWithSnapshot(l)
	at := time.Now()
	groups := taken.groups(snapshot, at)
	n := 0
	for _, g := range groups {
		n += g.len()
	}
	l.delivering.Store(int64(n))
	l.sampler.Begin(at)
	if n > 0 {
		l.current.Begin(at)
	}
	return groups
}

// takeWithSnapshot replaces the backlog of l by an empty one. For a coalescing listener it also returns the snapshot
// that completes the backlog, so no batch may be applied in between. Only this happens under the informer's lock, so
// the lock is held for the same time whatever the size of the backlog is.
func (p *pipeline[T]) takeWithSnapshot(l *processListener[T]) (backlog[T], *cache.Snapshot[T]) {
	if !l.coalesce {
		return l.swap(), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return l.swap(), p.indexer.Snapshot()
}
