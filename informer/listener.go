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
)

// processListener delivers to one handler, from one goroutine.
// It corresponds to processorListener of client-go, without the second goroutine and the channels between them.
type processListener[T api.Object] struct {
	name       string
	handle     func(Notification[T])
	log        *zap.Logger
	coalesce   bool
	newBacklog func() backlog[T]
	resync     resyncTimer // guarded by the informer's lock

	wake    chan struct{} // holds a token when the backlog may have grown
	stop    chan struct{} // closed by Remove
	synced  chan struct{} // closed when the initial list has been delivered
	done    chan struct{} // closed when no call is in flight and none will start
	removed atomic.Bool
	panics  atomic.Int64
	// delivering is how many notifications have been taken from the backlog and not been delivered.
	delivering atomic.Int64

	mu      sync.Mutex // guards the field below
	backlog backlog[T]

	pace    pace // of the delivering goroutine
	current inCall
}

func newProcessListener[T api.Object](
	name string, handle func(Notification[T]), coalesce bool, dog *watchdog, log *zap.Logger,
) *processListener[T] {
	l := &processListener[T]{
		name: name, handle: handle, log: log.With(zap.String("handler", name)),
		coalesce: coalesce, newBacklog: func() backlog[T] { return newBacklog[T](coalesce) },
		wake: make(chan struct{}, 1), stop: make(chan struct{}), synced: make(chan struct{}), done: make(chan struct{}),
		backlog: newBacklog[T](coalesce), current: inCall{dog: dog},
	}
	l.current.begun, l.current.ended = l.logStuck, l.logReturn
	return l
}

// push appends to the backlog. The informer's lock is held, so that groups come in one order for all listeners.
func (l *processListener[T]) push(g *group[T]) {
	l.mu.Lock()
	l.backlog.push(g)
	l.mu.Unlock()
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

// swap puts an empty backlog in the place of the present one, which it returns.
func (l *processListener[T]) swap() backlog[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.backlog
	l.backlog = l.newBacklog()
	l.delivering.Store(int64(taken.len()))
	return taken
}

// remove makes the listener end. What is pending is dropped, so that a handler which is stuck, or somebody who keeps the
// registration, does not keep that too.
func (l *processListener[T]) remove() {
	if l.removed.CompareAndSwap(false, true) {
		l.swap()
		close(l.stop)
	}
}

func (l *processListener[T]) ended(ctx context.Context) bool {
	return l.removed.Load() || ctx.Err() != nil
}

// run delivers until the listener is removed or ctx ends. take empties the backlog.
func (l *processListener[T]) run(ctx context.Context, take func(*processListener[T]) []*group[T]) {
	defer close(l.done)
	defer l.current.end()
	for {
		select {
		case <-l.wake:
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		}
		groups := take(l)
		for i, g := range groups {
			if !l.deliver(ctx, g) {
				return
			}
			groups[i] = nil // so that what is delivered is not kept by what is not
		}
		l.current.end()
	}
}

// deliver calls the handler for each notification of g. It reports whether to go on.
func (l *processListener[T]) deliver(ctx context.Context, g *group[T]) bool {
	for n := range g.all() {
		if l.ended(ctx) {
			return false
		}
		l.current.next()
		pending := l.delivering.Add(-1)
		l.call(n)
		if pending >= slowHandlerPending && l.pace.look() {
			l.measure(pending)
		}
	}
	if g.completes && !l.ended(ctx) {
		close(l.synced)
	}
	return true
}

// call contains a panic of the handler: the notification counts as delivered.
func (l *processListener[T]) call(n Notification[T]) {
	defer func() {
		if p := recover(); p != nil {
			l.panics.Add(1)
			l.log.Error("handler panicked", zap.Any("panic", p), zap.String("key", api.FormatKey(api.KeyOf(n.Object))),
				zap.ByteString("stack", debug.Stack()))
		}
	}()
	l.handle(n)
}

// measure warns of a handler that has fallen behind, and takes long.
func (l *processListener[T]) measure(pending int64) {
	if took, warn := l.pace.measure(time.Now()); warn {
		l.log.Warn("handler is slow", zap.Duration("took", took), zap.Int64("count", pending))
	}
}

// logStuck warns of a call that takes long.
func (l *processListener[T]) logStuck(took time.Duration) {
	l.log.Warn("handler takes long", zap.Duration("took", took), zap.Int("pending", l.pending()))
}

// logReturn says that such a call has returned.
func (l *processListener[T]) logReturn(took time.Duration) {
	l.log.Warn("handler has returned", zap.Duration("took", took))
}

// takeBacklog empties the backlog of l.
func (i *Informer[T]) takeBacklog(l *processListener[T]) []*group[T] {
	taken, now := i.exchange(l)
	at := time.Now()
	groups := taken.groups(now, at)
	n := 0
	for _, g := range groups {
		n += g.len()
	}
	l.delivering.Store(int64(n))
	l.pace.begin(at)
	if n > 0 {
		l.current.begin(at)
	}
	return groups
}

// exchange gives l an empty backlog for its own. A coalescing one is completed from the cache, so nothing may be applied
// to that in between; but no more than this is done under the informer's lock, however much there is to tell.
func (i *Informer[T]) exchange(l *processListener[T]) (backlog[T], *cache.Snapshot[T]) {
	if !l.coalesce {
		return l.swap(), nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return l.swap(), i.indexer.Snapshot()
}
