package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/internal/hooks"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
)

var (
	// ErrRunning is the error of a second call of Run.
	ErrRunning = errors.New("informer: Run was called before")
	// ErrStopped is the error of methods that need a running informer after Run has returned.
	ErrStopped = errors.New("informer: stopped")
)

// Options are the options of an Informer. The zero value is a good default.
type Options[T api.Object] struct {
	// Selector restricts which objects are listed, watched and cached.
	Selector api.Selector
	// KeepManagedFields caches metadata.managedFields. The default drops them.
	KeepManagedFields bool
	// NoSharedParts decodes each object whole. By default, objects share equal parts: an update that changes only the
	// status takes the spec of the previous state, and replicas have one slice of containers. They take less memory and
	// time. A change to a cached object, which is always wrong, then shows in other objects too; Mutations finds it in
	// tests. With Transform, which may change objects, an informer shares nothing.
	NoSharedParts bool

	// Transform changes an object before it is cached, for example to drop fields without readers. It may change the
	// object in place. It is called once for each state of an object, on the reflector's goroutine. If it returns an
	// error or panics, the cache keeps the last good state of the object; see Undecodable. A call that blocks also
	// delays earlier events that arrived in the same read of the connection.
	Transform func(T) (T, error)
	// OnUndecodable is called for each object that cannot be decoded into T, for which Transform fails, or that cannot
	// belong to the collection (reflector.ErrMalformed). If it returns an error, Run ends with that error;
	// reflector.Fail always does. By default such objects are counted and logged. A call that blocks delays the same
	// events as one of Transform.
	OnUndecodable func(*api.UndecodableError) error
	// OnError is called with every error that ended a list, a watch or a probe. The informer receives nothing until it
	// returns. For a probe it runs beside the watch, on another goroutine.
	OnError func(error)
	// OnRequest is called with every list, watch and probe that has ended by itself, for metrics, on the goroutines of
	// OnError. It must not block.
	OnRequest func(reflector.Request)

	// Gate bounds the number of lists of several informers. It may be nil. See packages fleet and scopes.
	Gate reflector.Gate

	// ResyncPeriod is the time between two resyncs of each handler without a period of its own. 0 means no resyncs. A
	// period below a second is raised to a second.
	ResyncPeriod time.Duration

	// Check compares the cache with the server from time to time, to find a change that the server did not send; see
	// package consistency. Nil means no checks.
	Check Check

	// StuckAfter is how long a call of a handler may take before the log, Status and metrics report it. The call
	// continues. The log reports the call once, and later its return. 0 means 5 minutes, a negative value means never.
	StuckAfter time.Duration
	// CrashOnPanic lets a panic of a handler end the process. Otherwise it is counted and logged.
	CrashOnPanic bool

	// Mutations finds cached objects that user code has changed; see DetectMutations. Nil means no detector. It has no
	// effect together with Hold.
	Mutations Mutations

	// OnBatch is called with every batch of changes that has reached the cache, and with the snapshot after it, for
	// metrics and traces. The batch is valid only during the call. The next batch waits for the call, so OnBatch must
	// not wait for another batch.
	OnBatch func(deltafifo.Batch[T], *cache.Snapshot[T])

	// Logger receives the log entries. A nil Logger means no log.
	Logger *zap.Logger

	// Hold decides how the informer holds the objects in memory. Package packed has implementations that keep bytes.
	// Nil keeps the decoded objects.
	Hold Holding[T]

	reflector.Tuning
}

// Informer keeps a cache equal to a collection on a server and notifies any number of handlers of the changes. It
// corresponds to cache.SharedIndexInformer of client-go.
type Informer[T api.Object] struct {
	lw            api.ListerWatcher[T]
	o             Options[T]
	log           *zap.Logger
	fifo          *deltafifo.DeltaFIFO[T]
	feed          Feed
	relist        func() bool                           // see reflector.Reflector.Relist; nil if Compose made the informer
	scopes        func() ([]ScopeStatus, string)        // nil unless Compose made the informer
	scopeChecks   func() CheckStatus                    // as scopes
	selectors     func(namespace string) []api.Selector // as scopes
	observeScopes func(f func()) (stop func())          // as scopes
	indexer       *cache.Indexer[T]
	mutations     mutationDetector // nil without Options.Mutations
	batches       hooks.Set[Stored]
	changes       hooks.Set[applied[T]]   // see ObserveChanges
	deliveries    hooks.Set[delivered[T]] // see ObserveDeliveries
	watchdog      *watchdog
	checkStatus   atomic.Pointer[CheckStatus] // of Options.Check; nil before it has reported
	held          held                        // works for this informer if Options.Hold is set; see View

	synced  chan struct{}  // closed when the cache holds the first list
	stopped chan struct{}  // closed when the cache does not change any more
	active  sync.WaitGroup // the goroutines that Run and late handlers have started

	mu            sync.Mutex // orders batches, joins and resyncs; guards the fields below
	state         runstate.State
	startListener func(*processListener[T]) // starts the goroutine of a listener; nil unless Run is active
	listeners     []*processListener[T]
	ready         []*processListener[T] // those that process calls itself; only process and its callees use it
	resyncCheck   time.Duration         // the period of the resync ticker; fixed when Run begins; 0 means no ticker
	waiters       []*waiter
	heardAt       time.Time // when the newest state in the cache was received: a change, a version or the first list
}

// New returns an informer of the objects that lw lists. It sends no request before Run.
func New[T api.Object](lw api.ListerWatcher[T], o Options[T]) *Informer[T] {
	if o.Hold != nil {
		i := &Informer[T]{lw: lw, o: o}
		o.Hold.HoldObjects(i)
		return i
	}
	i := newInformer(lw, o)
	ro := o.reflector()
	if o.OnBatch == nil && o.Mutations == nil { // these may block, and must not block the reflector
		ro.OnWait = func(more bool) { i.fifo.Flush(i.process, more) }
	}
	r := reflector.New(lw, i.fifo, ro)
	i.relist = r.Relist
	i.setFeed(r)
	return i
}

func newInformer[T api.Object](lw api.ListerWatcher[T], o Options[T]) *Informer[T] {
	i := &Informer[T]{
		lw: lw, o: o, fifo: deltafifo.New[T](),
		indexer: cache.New[T](),
		synced:  make(chan struct{}),
		stopped: make(chan struct{}),
	}
	i.watchdog = newWatchdog(o.StuckAfter, i.calls)
	if o.Mutations != nil {
		i.mutations = o.Mutations.newDetector()
	}
	return i
}

func (i *Informer[T]) setFeed(f Feed) {
	i.feed = f
	i.log = f.Logger()
}

// UseLogger sets the logger if Options.Logger is nil. A manager calls it with its own logger. After the start of Run it
// has no effect.
func (i *Informer[T]) UseLogger(log *zap.Logger) {
	if i.held != nil {
		i.held.UseLogger(log)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state != runstate.Created {
		return
	}
	i.feed.UseLogger(log)
	i.log = i.feed.Logger()
	for _, l := range i.listeners {
		l.useLogger(i.log)
	}
}

func (o Options[T]) reflector() reflector.Options[T] {
	return reflector.Options[T]{
		Selector: o.Selector, KeepManagedFields: o.KeepManagedFields, NoSharedParts: o.NoSharedParts,
		Transform: o.Transform, OnUndecodable: o.OnUndecodable, OnError: o.OnError, OnRequest: o.OnRequest,
		Gate: o.Gate, Logger: o.Logger, Tuning: o.Tuning,
	}
}

// Resource returns the resource of the cached objects.
func (i *Informer[T]) Resource() api.Resource { return i.lw.Collection().Resource }

// ListerWatcher returns the ListerWatcher that New received.
func (i *Informer[T]) ListerWatcher() api.ListerWatcher[T] { return i.lw }

// Options returns the options that New received.
func (i *Informer[T]) Options() Options[T] { return i.o }

// Cache returns a reader of the cache. Each of its methods reads the newest snapshot.
func (i *Informer[T]) Cache() cache.Reader[T] { return i.indexer }

// Indexer returns the cache itself, for tests and adapters that write to it. A write calls no handler, but the object
// is in the replays that follow. Run does not know it: a later change of the object replaces it, and a relist does not
// undo it. Indexer returns nil if Options.Hold is set, because such a cache is only for reading.
func (i *Informer[T]) Indexer() *cache.Indexer[T] {
	if i.held != nil {
		return nil
	}
	return i.indexer
}

// Snapshot returns the current content of the cache, with its version. A snapshot never changes.
func (i *Informer[T]) Snapshot() *cache.Snapshot[T] { return i.indexer.Snapshot() }

// ResourceVersion returns the exact version of the cache. It is empty before the first list.
func (i *Informer[T]) ResourceVersion() string { return i.indexer.Snapshot().ResourceVersion() }

// Synced returns a channel that is closed when the cache holds the first list. If Run ends before, the channel is never
// closed. Handlers may not have processed the list at that time; see Registration.Synced.
func (i *Informer[T]) Synced() <-chan struct{} { return i.synced }

// Stopped returns a channel that is closed when Run is ending: the cache does not change any more, and no handler can
// join.
func (i *Informer[T]) Stopped() <-chan struct{} { return i.stopped }

// Undecodable returns the objects whose newest state is not in the cache because it could not be decoded or
// transformed.
func (i *Informer[T]) Undecodable() []*api.UndecodableError {
	if i.held != nil {
		return i.held.Undecodable()
	}
	return i.feed.Undecodable()
}

// AddIndex adds an index to the informer's cache, before or during Run. It corresponds to AddIndexers of client-go. The
// returned value reads the index, so an index has no name, and its values have a type.
func AddIndex[T api.Object, V comparable](i *Informer[T], f cache.IndexFunc[T, V]) *cache.Index[T, V] {
	return cache.AddIndex(i.indexer, f)
}

// Run fills the cache, keeps it up to date and calls the handlers until ctx ends. It then waits for the calls in flight
// and for all its goroutines, drops the pending notifications and returns nil. An error of OnUndecodable also ends Run,
// and Run returns it. Run can be called once; the next call returns ErrRunning.
func (i *Informer[T]) Run(ctx context.Context) error {
	if i.held != nil {
		return i.held.heldRun(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := i.begin(ctx); err != nil {
		return err
	}
	var fatal error
	i.active.Go(func() {
		fatal = i.feed.Run(ctx)
		cancel()
	})
	if i.resyncCheck > 0 {
		i.active.Go(func() { i.resyncLoop(ctx, i.resyncCheck) })
	}
	if i.o.Check != nil && i.scopes == nil {
		i.active.Go(func() { i.o.Check.Run(ctx, i.checked()) })
	}
	for i.fifo.Pop(ctx, i.process) == nil {
	}
	i.fifo.Close()
	i.end()
	i.active.Wait()
	i.watchdog.stop()
	if i.mutations != nil {
		i.mutations.check()
	}
	if fatal != nil {
		return fmt.Errorf("informer: %w", fatal)
	}
	return nil
}

// begin starts the goroutines of the handlers that were registered before Run.
func (i *Informer[T]) begin(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.state != runstate.Created {
		return ErrRunning
	}
	i.state = runstate.Running
	i.startListener = func(l *processListener[T]) {
		l.resync.start(time.Now())
		l.start(ctx, i.takeBacklog)
		i.active.Go(func() {
			defer i.removeEnded(ctx, l)
			l.run(ctx)
		})
	}
	i.resyncCheck = resyncPeriod(i.o.ResyncPeriod, 0, false)
	for _, l := range i.listeners {
		if p := l.resync.period; p > 0 && (i.resyncCheck == 0 || p < i.resyncCheck) {
			i.resyncCheck = p
		}
		i.startListener(l)
	}
	return nil
}

// end prevents further joins, so that Run can wait for active.
func (i *Informer[T]) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state, i.startListener = runstate.Ending, nil
	close(i.stopped)
}
