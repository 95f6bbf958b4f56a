package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/hooks"
	"github.com/leatproject/leat/workqueue"
)

// Controller runs a Reconciler for the keys that its sources add.
// It corresponds to TypedController of controller-runtime.
type Controller[K comparable] struct {
	name       string
	reconciler Reconciler[K]
	o          Options
	log        *zap.Logger
	queue      *workqueue.Queue[K]
	limiters   int                                       // that the queue was given, in the place of Options.Backoff and Options.Bucket
	filter     filter[informer.Notification[api.Object]] // of all sources of informers
	gates      gatehouse[K]
	history    history[K]
	times      hooks.Set[Times]
	counters   counters

	synced chan struct{}  // closed when every source is
	held   atomic.Bool    // the sources are synced, and the workers wait for RunHeld's release
	active sync.WaitGroup // every source and every worker

	mu       sync.Mutex // guards the fields below, and Sink.cancel
	life     lifecycle
	resource api.Resource                 // of what the keys name, as far as the sources tell; settled by Run
	running  []atomic.Pointer[attempt[K]] // what each worker does; made by Run
	launch   func(*Sink[K])               // starts a source; set while Run lets sources join
	sinks    []*Sink[K]                   // whose sources have not ended
	failure  error                        // what Run will return
}

type lifecycle int

const (
	created lifecycle = iota
	running
	ended
)

// New returns a controller that reconciles with r; it does nothing until Run. The name stands in logs, errors and
// metrics. With limiters, the longest delay that any of them asks for says when a failed key is tried again, and
// Options.Backoff and Options.Bucket must be zero. It panics without a name or a reconciler, and where an option has a
// value that it cannot have; Spec.Build returns errors.
// It corresponds to NewTypedUnmanaged of controller-runtime.
func New[K comparable](name string, r Reconciler[K], o Options, limiters ...workqueue.RateLimiter[K]) *Controller[K] {
	s := Spec[K]{Name: name, Reconciler: r, Options: o, Limiters: limiters}
	if problems := s.problems(); len(problems) > 0 {
		panic(s.wrap(problems).Error())
	}
	o = o.withDefaults(len(limiters))
	inner, gates := takeGates(r)
	return &Controller[K]{
		name: name, reconciler: inner, o: o,
		log:      o.Logger.With(zap.String("controller", name)),
		queue:    workqueue.New(o.queue(name), limiters...),
		limiters: len(limiters),
		filter:   filter[informer.Notification[api.Object]]{}.when(o.When),
		gates:    gatehouse[K]{gates: gates, held: map[K]*hold[K]{}},
		synced:   make(chan struct{}),

		history: history[K]{limit: o.History, pages: map[K]*page[K]{}},
	}
}

// Name is the one given to New.
func (c *Controller[K]) Name() string { return c.name }

// Synced is closed when every source that was to be watched before has processed its initial list. The workers begin
// then, unless they are held: see RunHeld. It is never closed if Run ends before.
func (c *Controller[K]) Synced() <-chan struct{} { return c.synced }

// Watch makes the controller reconcile the keys of s, from when Run begins or, while it runs, from now on. It does not
// block: Registration.Synced says when what is there has been added to the queue.
// A source that ends with an error ends the controller, for it would be deaf.
func (c *Controller[K]) Watch(s Source[K]) *Registration {
	if s == nil {
		panic("controller: Watch needs a source")
	}
	sink := &Sink[K]{
		controller: c, source: s, name: s.String(),
		synced: make(chan struct{}), done: make(chan struct{}),
	}
	var of api.Resource
	if k, ok := s.(keyed); ok {
		of = k.KeysOf()
	}
	c.join(sink, of)
	return &Registration{
		name: sink.name, synced: sink.synced, done: sink.done, notSynced: sink.notSynced,
		err: func() error {
			if isClosed(sink.done) {
				return sink.err
			}
			return nil
		},
		remove: func() { c.remove(sink) },
	}
}

// Add adds a key to the queue, as a source would: for a request that asks for a reconcile, or a test. It never blocks, and
// may be called at any time; before the workers begin the key waits for them, and after Run it is dropped.
func (c *Controller[K]) Add(key K, item workqueue.Item) { c.queue.AddWith(key, item) }

// join adds a source whose keys name objects of a resource; it is zero where that is not known.
func (c *Controller[K]) join(s *Sink[K], of api.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life == ended {
		s.err = ErrStopped
		s.removed.Store(true)
		close(s.done)
		return
	}
	c.sinks = append(c.sinks, s)
	if c.life == created && c.resource == (api.Resource{}) {
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

// Run watches the sources, waits until each has processed its initial list, and then reconciles until ctx ends.
// It returns nil then, when the reconciles in flight, whose contexts end with ctx, have returned and no goroutine is
// left; keys that were not taken by then are dropped. It returns an error, after the same end, if a source is not synced
// in time (a *SyncError for each) or ends with an error. A controller runs once.
func (c *Controller[K]) Run(ctx context.Context) error { return c.RunHeld(ctx, nil) }

// RunHeld is Run with workers that do not begin before release is closed, however early the sources are synced: what
// happens until then is in the queue, so that a replica that becomes the leader need not list first. A nil channel holds
// nothing. Synced is not held, nor is what a source that fails does to the controller.
// It corresponds to Warmup, and Start after it, of controller-runtime.
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

// awaitRelease returns whether the workers may begin; otherwise ctx has ended.
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

// begin starts the sources that are there already.
func (c *Controller[K]) begin(ctx context.Context, cancel context.CancelFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life != created {
		return fmt.Errorf("%w (%s)", ErrRunning, c.name)
	}
	c.life = running
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

// end lets nothing join any more, so that active can be waited for.
func (c *Controller[K]) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.life, c.launch = ended, nil
	for _, s := range c.sinks {
		s.removed.Store(true)
	}
	c.queue.ShutDown()
}
