package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/internal/hooks"
	"github.com/leatproject/leat/reflector"
)

var (
	// ErrRunning is returned by Run when it has been called before.
	ErrRunning = errors.New("informer: Run was called before")
	// ErrStopped is returned by what needs a running informer once Run has returned.
	ErrStopped = errors.New("informer: stopped")
)

// Options of an Informer. The zero value is what most want.
type Options[T api.Object] struct {
	// LabelSelector and FieldSelector restrict what is listed, watched and cached.
	LabelSelector string
	FieldSelector string

	// Transform changes an object before it is cached, for instance to drop what nobody reads; it may do so in place.
	// It is called once for each state of an object, on one goroutine. An error or a panic leaves the last good state
	// of the object in the cache; see Undecodable.
	Transform func(T) (T, error)
	// OnUndecodable is called for each object that cannot be decoded into T or be transformed, or that matches
	// reflector.ErrMalformed because it cannot belong to the collection. An error ends Run with that error;
	// reflector.Fail is one that does so for every object. By default such objects are counted and logged.
	OnUndecodable func(*api.UndecodableError) error
	// OnError is called with every error that a list or a watch ended with. Until it returns, nothing is received.
	OnError func(error)
	// OnRequest is called with every list and watch that has ended, for metrics. It must not block.
	OnRequest func(reflector.Request)

	// ResyncPeriod is how often handlers that do not say otherwise are told of every object again. 0 is never, and
	// anything shorter than a second is a second.
	ResyncPeriod time.Duration

	// StuckAfter is how long a call of a handler may take before the log, Status and metrics report it. Nothing else
	// happens to it. The log says once that it takes long, and once that it has returned. Zero means 5 minutes, a
	// negative value never.
	StuckAfter time.Duration

	// DisableStreaming, PageSize, MaxListObjects, KeepManagedFields, NoListReuse, NoWatchDedup, MinWatchTimeout,
	// BackoffBase, BackoffMax, MaxRetryAfter and Rand are those of reflector.Options.
	DisableStreaming        bool
	PageSize                int64
	MaxListObjects          int
	KeepManagedFields       bool
	NoListReuse             bool
	NoWatchDedup            bool
	MinWatchTimeout         time.Duration
	BackoffBase, BackoffMax time.Duration
	MaxRetryAfter           time.Duration
	Rand                    func() float64

	// OnMutation turns the mutation detector on: it is called with each object of the cache that somebody has changed,
	// which is looked for when Run ends, and now and then before. It costs a copy of every object, and is meant for
	// tests. Until it returns, no batch is handled.
	OnMutation func(cache.Mutation)

	// OnBatch is called with every batch of changes once it is in the cache, and with the state that it led to: for
	// metrics and traces. The batch is lent for the call, during which the next one waits: it must not wait for what
	// only another batch can bring.
	OnBatch func(deltafifo.Batch[T], *cache.Snapshot[T])

	// Logger is silent when nil.
	Logger *zap.Logger
}

// Informer keeps a cache equal to a collection on a server, and tells handlers of the changes.
// It corresponds to cache.SharedIndexInformer of client-go; any number of handlers may share it.
type Informer[T api.Object] struct {
	lw        api.ListerWatcher[T]
	o         Options[T]
	log       *zap.Logger
	fifo      *deltafifo.DeltaFIFO[T]
	reflector *reflector.Reflector[T]
	indexer   *cache.Indexer[T]
	mutations *mutations[T]
	batches   hooks.Set[Stored]
	watchdog  *watchdog

	synced  chan struct{}  // closed once the cache holds the first list
	stopped chan struct{}  // closed once the cache will not change any more
	active  sync.WaitGroup // everything that Run and those who join it have started

	mu          sync.Mutex // the one lock: orders batches, joins and resyncs; guards the fields below
	life        lifecycle
	launch      func(*processListener[T]) // starts a listener; set while Run lets handlers join
	listeners   []*processListener[T]
	resyncCheck time.Duration // how often handlers can be due; fixed when Run begins, 0 is never
	waiters     []*waiter
	heard       time.Time // when the last batch of changes was received
}

type lifecycle int

const (
	created lifecycle = iota
	running
	ending // Run has been told to end, and waits for what it started
	ended
)

// New returns an informer of what lw lists. It does nothing until Run.
func New[T api.Object](lw api.ListerWatcher[T], o Options[T]) *Informer[T] {
	log := o.Logger
	if log == nil {
		log = zap.NewNop()
	}
	fifo := deltafifo.New[T](deltafifo.Options{NoReuse: o.NoListReuse})
	i := &Informer[T]{
		lw: lw, o: o, fifo: fifo,
		log:       log.With(zap.Stringer("resource", lw.Resource())),
		reflector: reflector.New(lw, fifo, o.reflector()),
		indexer:   cache.New[T](cache.Options{}),
		mutations: newMutations[T](o.OnMutation),
		synced:    make(chan struct{}),
		stopped:   make(chan struct{}),
	}
	i.watchdog = newWatchdog(o.StuckAfter, i.calls)
	return i
}

func (o Options[T]) reflector() reflector.Options[T] {
	return reflector.Options[T]{
		LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector,
		DisableStreaming: o.DisableStreaming, PageSize: o.PageSize, MaxListObjects: o.MaxListObjects,
		KeepManagedFields: o.KeepManagedFields, NoListReuse: o.NoListReuse, NoWatchDedup: o.NoWatchDedup,
		Transform: o.Transform, OnUndecodable: o.OnUndecodable, OnError: o.OnError, OnRequest: o.OnRequest,
		MinWatchTimeout: o.MinWatchTimeout, BackoffBase: o.BackoffBase, BackoffMax: o.BackoffMax,
		MaxRetryAfter: o.MaxRetryAfter, Rand: o.Rand, Logger: o.Logger,
	}
}

// Resource says what is cached.
func (i *Informer[T]) Resource() api.Resource { return i.lw.Resource() }

// ListerWatcher returns what is listed and watched.
func (i *Informer[T]) ListerWatcher() api.ListerWatcher[T] { return i.lw }

// Options returns what the informer was made with: what it selects, and what it does to an object before it is cached.
func (i *Informer[T]) Options() Options[T] { return i.o }

// Cache returns the cache as it is at each call.
func (i *Informer[T]) Cache() cache.Reader[T] { return i.indexer }

// Snapshot returns the cache as it is now; it never changes, and says what version it is.
func (i *Informer[T]) Snapshot() *cache.Snapshot[T] { return i.indexer.Snapshot() }

// ResourceVersion is the exact version of what the cache holds, empty before the first list.
func (i *Informer[T]) ResourceVersion() string { return i.indexer.Snapshot().ResourceVersion() }

// Synced is closed once the cache holds the first list. It is never closed if Run ends before. That handlers have been
// told is what their Registration's Synced says.
func (i *Informer[T]) Synced() <-chan struct{} { return i.synced }

// Stopped is closed when Run is ending: the cache does not change any more, and no handler can join.
func (i *Informer[T]) Stopped() <-chan struct{} { return i.stopped }

// Undecodable returns the objects whose newest state is not in the cache because it could not be decoded, or
// transformed.
func (i *Informer[T]) Undecodable() []*api.UndecodableError { return i.reflector.Undecodable() }

// AddIndex keeps an index of the informer's cache, from now on and whether it runs or not.
// It corresponds to AddIndexers of client-go. The index is used through what is returned, so that there is no name to
// mistype and no value to convert.
func AddIndex[T api.Object, V comparable](i *Informer[T], f cache.IndexFunc[T, V]) *cache.Index[T, V] {
	return cache.AddIndex(i.indexer, f)
}

// Run fills the cache, keeps it up to date and tells handlers, until ctx ends. It returns nil then, when the calls of
// handlers in flight have returned and no goroutine is left; what handlers had not been told by then they are not told.
// An error of OnUndecodable is the only other end. An informer runs once.
func (i *Informer[T]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := i.begin(ctx); err != nil {
		return err
	}
	var fatal error
	i.active.Go(func() {
		fatal = i.reflector.Run(ctx)
		cancel()
	})
	if i.resyncCheck > 0 {
		i.active.Go(func() { i.resyncLoop(ctx, i.resyncCheck) })
	}
	for i.fifo.Pop(ctx, i.process) == nil {
	}
	i.end()
	i.active.Wait()
	i.watchdog.stop()
	i.mutations.check()
	if fatal != nil {
		return fmt.Errorf("informer: %w", fatal)
	}
	return nil
}

// begin starts the handlers that are there already.
func (i *Informer[T]) begin(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.life != created {
		return ErrRunning
	}
	i.life = running
	i.launch = func(l *processListener[T]) {
		l.resync.start(time.Now())
		i.active.Go(func() {
			defer i.leaveUnless(ctx, l)
			l.run(ctx, i.takeBacklog)
		})
	}
	i.resyncCheck = resyncPeriod(i.o.ResyncPeriod, 0, false)
	for _, l := range i.listeners {
		if p := l.resync.period; p > 0 && (i.resyncCheck == 0 || p < i.resyncCheck) {
			i.resyncCheck = p
		}
		i.launch(l)
	}
	return nil
}

// end lets nobody join any more, so that active can be waited for.
func (i *Informer[T]) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.life, i.launch = ended, nil
	close(i.stopped)
}
