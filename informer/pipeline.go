package informer

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/informer/internal/slowcalls"
	"github.com/leatproject/leat/internal/hooks"
	"github.com/leatproject/leat/internal/runstate"
)

// pipeline does the work of an informer: a feed fills the queue, Run applies its batches to the cache, and listeners
// call the handlers.
type pipeline[T api.Object] struct {
	o         Options[T]
	log       *zap.Logger
	feed      Feed
	fifo      *deltafifo.DeltaFIFO[T]
	indexer   *cache.Indexer[T]
	mutations mutationDetector // nil without Options.Mutations
	traces    hooks.Set[Trace]
	watchdog  *slowcalls.Watchdog
	events    events
	active    sync.WaitGroup // the goroutines of run, and of handlers that joined later

	mu       sync.Mutex // orders batches, joins and resyncs; guards the fields below
	life     runstate.State
	handlers handlers[T]
	waiters  []*waiter
	heardAt  time.Time // when the newest state in the cache was received: a change, a version or the first list
}

// events are channels. Each is closed once.
type events struct {
	synced  chan struct{} // the cache holds the first list
	stopped chan struct{} // the cache does not change any more
}

// handlers are the listeners of a pipeline.
type handlers[T api.Object] struct {
	start  func(*processListener[T], time.Time) // starts the goroutine of a listener; nil unless run is active
	all    []*processListener[T]
	ready  []*processListener[T] // those that process calls itself; only process and its callees use it
	resync *time.Timer           // of the next resync; made by begin
}

func newPipeline[T api.Object](o Options[T], feed func(*pipeline[T]) Feed) *pipeline[T] {
	p := &pipeline[T]{
		o: o, fifo: deltafifo.New[T](), indexer: cache.New[T](),
		events: events{synced: make(chan struct{}), stopped: make(chan struct{})},
	}
	p.watchdog = slowcalls.New(o.StuckAfter, p.calls)
	if o.Mutations != nil {
		p.mutations = o.Mutations.newDetector()
	}
	p.feed = feed(p)
	p.log = p.feed.Logger()
	return p
}

func (p *pipeline[T]) cache() *cache.Indexer[T] { return p.indexer }

func (p *pipeline[T]) ends() events { return p.events }

func (p *pipeline[T]) source() Feed { return p.feed }

func (p *pipeline[T]) useLogger(log *zap.Logger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != runstate.Created {
		return
	}
	p.feed.UseLogger(log)
	p.log = p.feed.Logger()
	for _, l := range p.handlers.all {
		l.useLogger(p.log)
	}
}

func (p *pipeline[T]) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.begin(ctx); err != nil {
		return err
	}
	var fatal error
	p.active.Go(func() {
		fatal = p.feed.Run(ctx)
		cancel()
	})
	for p.fifo.Pop(ctx, p.process) == nil {
	}
	p.fifo.Close()
	p.end()
	p.active.Wait()
	p.watchdog.Stop()
	if p.mutations != nil {
		p.mutations.report(true)
	}
	if fatal != nil {
		return fmt.Errorf("informer: %w", fatal)
	}
	return nil
}

// begin starts the goroutines of the handlers that were registered before Run.
func (p *pipeline[T]) begin(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != runstate.Created {
		return ErrRunning
	}
	p.life = runstate.Running
	p.handlers.resync = time.AfterFunc(math.MaxInt64, p.fifo.Resync)
	p.handlers.start = func(l *processListener[T], now time.Time) {
		l.resync.start(now)
		l.start(ctx, p.takeBacklog)
		p.active.Go(func() {
			defer p.removeEnded(ctx, l)
			l.run(ctx)
		})
	}
	now := time.Now() // one for all, so that handlers with one period are due together
	for _, l := range p.handlers.all {
		p.handlers.start(l, now)
	}
	p.scheduleResync(now)
	return nil
}

// end prevents further joins, so that Run can wait for active.
func (p *pipeline[T]) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life, p.handlers.start = runstate.Ending, nil
	p.handlers.resync.Stop()
	close(p.events.stopped)
}
