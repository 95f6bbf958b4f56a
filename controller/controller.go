package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/controller/internal/history"
	"github.com/leatproject/leat/internal/hooks"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/workqueue"
)

// Controller runs a Reconciler for the keys that its sources add. It corresponds to TypedController of
// controller-runtime.
type Controller[K comparable] struct {
	name       string
	reconciler Reconciler[K]
	o          Options
	log        *zap.Logger
	ownLogger  bool // Options had a logger
	queue      *workqueue.Queue[K]
	gates      heldKeys[K]
	history    *history.History[K]
	traces     hooks.Set[Trace]
	counters   counters

	synced chan struct{}  // closed when every source is synced
	held   atomic.Bool    // the sources are synced, and the workers wait for the release of RunHeld
	active sync.WaitGroup // every source and every worker

	mu       sync.Mutex // guards the fields below, and Sink.cancel
	life     runstate.State
	resource api.Resource                 // the resource that the keys name, if a source knows it; fixed by Run
	running  []atomic.Pointer[attempt[K]] // the current attempt of each worker; made by Run
	launch   func(*Sink[K])               // starts a source; nil unless Run is under way
	sinks    []*Sink[K]                   // of the sources that have not ended
	failure  error                        // the error that Run will return
}

// New returns a controller that reconciles with r. It does nothing until Run. Logs, errors and metrics contain the
// name. If there are limiters, the longest of their delays decides when a failed key is tried again, and
// Backoff and Bucket of Options.Queue must be zero. New panics without a name or a reconciler, and if an option is
// invalid; use Spec.Build to get an error instead. It corresponds to NewTypedUnmanaged of controller-runtime.
func New[K comparable](name string, r Reconciler[K], o Options, limiters ...workqueue.RateLimiter[K]) *Controller[K] {
	s := Spec[K]{Name: name, Reconciler: r, Options: o, Limiters: limiters}
	if problems := s.problems(); len(problems) > 0 {
		panic(s.wrap(problems).Error())
	}
	ownLogger := o.Logger != nil
	o = o.withDefaults(name)
	queue := workqueue.New(o.Queue, limiters...)
	o.Queue = queue.Options()
	inner, gates := takeGates(r)
	c := &Controller[K]{
		name: name, reconciler: inner, o: o,
		log: o.Logger.With(zap.String("controller", name)), ownLogger: ownLogger,
		queue:   queue,
		gates:   heldKeys[K]{gates: gates, held: map[K]*hold[K]{}},
		history: history.New[K](o.History),
		synced:  make(chan struct{}),
	}
	c.traceSelf()
	return c
}

// Name returns the name that was passed to New.
func (c *Controller[K]) Name() string { return c.name }

// UseLogger sets the logger if Options.Logger is nil, also that of the reconciler's gates. A manager calls it with its
// own logger. After the start of Run it has no effect.
func (c *Controller[K]) UseLogger(log *zap.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ownLogger || c.life != runstate.Created {
		return
	}
	c.o.Logger, c.log = log, log.With(zap.String("controller", c.name))
	for _, g := range c.gates.gates {
		if user, ok := g.(interface{ UseLogger(*zap.Logger) }); ok {
			user.UseLogger(log)
		}
	}
}

// Options returns the effective options: with the defaults, and with the number of workers that run, or that Run would
// start now. Backoff and Bucket are zero if New got limiters. The caller must not change the maps and slices.
// controller-runtime has nothing like it; kube-controller-manager has /configz.
func (c *Controller[K]) Options() Options {
	o := c.o
	o.Workers = c.size()
	return o
}

// Synced returns a channel that is closed when every source that was watched before that moment has processed its
// initial list. Then the workers begin, unless RunHeld holds them. If Run ends earlier, the channel is never closed.
func (c *Controller[K]) Synced() <-chan struct{} { return c.synced }

// Watch makes the controller reconcile the keys of s: from the start of Run or, if it runs already, from now on. Watch
// does not block; Registration.Synced is closed when the keys of the existing objects are in the queue. If the source
// ends with an error, the controller ends too, because it would miss events.
func (c *Controller[K]) Watch(s Source[K]) *SourceRegistration {
	if s == nil {
		panic("controller: Watch needs a source")
	}
	sink := &Sink[K]{
		controller: c, source: s, name: s.String(),
		synced: make(chan struct{}), done: make(chan struct{}),
	}
	var of api.Resource
	if k, ok := s.(keyed); ok {
		of = k.keysOf()
	}
	c.join(sink, of)
	return &SourceRegistration{
		name: sink.name, synced: sink.synced, done: sink.done, notSynced: sink.notSynced,
		err: func() error {
			if runstate.IsClosed(sink.done) {
				return sink.err
			}
			return nil
		},
		remove: func() { c.remove(sink) },
	}
}

// Add adds a key to the queue, as a source would. Use it when a request asks for a reconcile, and in tests. It never
// blocks and may be called at any time. Before the workers begin, the key waits for them; after Run, it is dropped.
func (c *Controller[K]) Add(key K, item workqueue.Item) { c.queue.AddWith(key, item) }

// join adds a source. Its keys name objects of the given resource; the zero Resource means unknown.
func (c *Controller[K]) join(s *Sink[K], of api.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life == runstate.Ended {
		s.err = ErrStopped
		s.removed.Store(true)
		close(s.done)
		return
	}
	c.sinks = append(c.sinks, s)
	if c.life == runstate.Created && c.resource == (api.Resource{}) {
		c.resource = of
	}
	if c.launch != nil {
		c.launch(s)
	}
}

func (c *Controller[K]) remove(s *Sink[K]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.removed.Swap(true) {
		return
	}
	if s.cancel != nil {
		s.cancel()
		return
	}
	c.forget(s)
	close(s.done)
}

// Run watches the sources, waits until each has processed its initial list, and then reconciles until ctx ends. The
// contexts of reconciles end with ctx. Run returns nil after all reconciles have returned and all its goroutines have
// ended; it drops the keys that are still in the queue. It returns an error, after the same steps, if a source is not
// synced in time (a *SyncError for each) or ends with an error. A controller runs once.
func (c *Controller[K]) Run(ctx context.Context) error { return c.RunHeld(ctx, nil) }

// RunHeld does the same as Run, but the workers do not begin before release is closed. The queue fills meanwhile, so a
// replica that becomes the leader need not list first. A nil channel does not hold the workers. RunHeld delays neither
// Synced nor the end of the controller if a source fails. It corresponds to Warmup followed by Start of
// controller-runtime.
func (c *Controller[K]) RunHeld(ctx context.Context, release <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := c.begin(ctx, cancel); err != nil {
		return err
	}
	if c.awaitSources(ctx, cancel) && c.awaitRelease(ctx, release) {
		c.startWorkers(ctx)
		c.watchWorkers(ctx)
	}
	<-ctx.Done()
	c.end()
	c.logInFlight()
	c.active.Wait()
	return c.failure
}

// awaitRelease reports whether the workers may begin; otherwise ctx has ended.
func (c *Controller[K]) awaitRelease(ctx context.Context, release <-chan struct{}) bool {
	if release == nil {
		return true
	}
	c.held.Store(true)
	defer c.held.Store(false)
	select {
	case <-release:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// begin starts the sources that are already watched.
func (c *Controller[K]) begin(ctx context.Context, cancel context.CancelFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life != runstate.Created {
		return fmt.Errorf("%w (%s)", ErrRunning, c.name)
	}
	c.life = runstate.Running
	c.running = make([]atomic.Pointer[attempt[K]], c.o.workers(c.resource))
	if c.resource != (api.Resource{}) {
		c.log = c.log.With(zap.Stringer("resource", c.resource))
	}
	c.launch = func(s *Sink[K]) {
		var own context.Context
		own, s.cancel = context.WithCancel(ctx)
		c.active.Go(func() { c.runSource(own, s, cancel) })
	}
	for _, s := range c.sinks {
		c.launch(s)
	}
	return nil
}

// hasBegun reports whether Run was called.
func (c *Controller[K]) hasBegun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life != runstate.Created
}

// end stops new sources from joining, so that Run can wait for active.
func (c *Controller[K]) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life, c.launch = runstate.Ended, nil
	for _, s := range c.sinks {
		s.removed.Store(true)
	}
	c.queue.ShutDown()
}
