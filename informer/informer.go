package informer

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/deltafifo"
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
	// Transform changes an object before it is cached, for example to drop fields without readers. It may change the
	// object in place. It is called once for each state of an object, on the reflector's goroutine. If it returns an
	// error or panics, the cache keeps the last good state of the object; see Undecodable. A call that blocks also
	// delays earlier events that arrived in the same read of the connection.
	Transform func(T) (T, error)
	// Hold decides how the informer holds the objects in memory. Package packed has implementations that keep bytes.
	// Nil keeps the decoded objects.
	Hold Holding[T]

	// Gate bounds the number of lists of several informers. It may be nil. See packages stagger and scopes.
	Gate reflector.Gate
	// Check compares the cache with the server from time to time, to find a change that the server did not send; see
	// package driftcheck. Nil means no checks.
	Check Check
	// Mutations finds cached objects that user code has changed; see DetectMutations. Nil means no detector. It has no
	// effect together with Hold.
	Mutations Mutations
	// Logger receives the log entries. A nil Logger means no log.
	Logger *zap.Logger

	Handling
	reflector.Memory
	reflector.Hooks
	reflector.Tuning
}

// Handling decides how handlers are called. The zero value is a good default.
type Handling struct {
	// ResyncPeriod is the time between two resyncs of each handler without a period of its own. 0 means no resyncs. A
	// period below a second is raised to a second.
	ResyncPeriod time.Duration
	// StuckAfter is how long a call of a handler may take before the log, Status and metrics report it. The call
	// continues. The log reports the call once, and later its return. 0 means 5 minutes, a negative value means never.
	StuckAfter time.Duration
	// CrashOnPanic lets a panic of a handler end the process. Otherwise it is counted and logged.
	CrashOnPanic bool
}

// Informer keeps a cache equal to a collection on a server and notifies any number of handlers of the changes. It
// corresponds to cache.SharedIndexInformer of client-go. Its pipeline does the work, and may hold the objects in
// another form; the informer shows them as T.
type Informer[T api.Object] struct {
	lw       api.ListerWatcher[T]
	o        Options[T]
	pipeline shown[T]
	indexer  *cache.Indexer[T]
}

// New returns an informer of the objects that lw lists. It sends no request before Run.
func New[T api.Object](lw api.ListerWatcher[T], o Options[T]) *Informer[T] {
	if o.Hold != nil {
		return newInformer(lw, o, o.Hold.Hold(lw, o).pipeline)
	}
	return newInformer(lw, o, newPipeline(o, streamOf(lw)))
}

// Compose returns an informer whose queue is filled by a feed. feed gets the new queue, and the options of a reflector
// that follow from o. The informer reads only the description of lw, and never lists or watches it. Compose panics if
// Options.Hold is set.
func Compose[T api.Object](
	lw api.ListerWatcher[T], o Options[T], feed func(*deltafifo.DeltaFIFO[T], reflector.Options[T]) Feed,
) *Informer[T] {
	if o.Hold != nil {
		panic("informer: Compose cannot use Options.Hold; leave it nil")
	}
	return newInformer(lw, o, newPipeline(o, func(p *pipeline[T]) Feed { return feed(p.fifo, o.reflector()) }))
}

func newInformer[T api.Object](lw api.ListerWatcher[T], o Options[T], p shown[T]) *Informer[T] {
	return &Informer[T]{lw, o, p, p.cache()}
}

// UseLogger sets the logger if Options.Logger is nil. A manager calls it with its own logger. After the start of Run it
// has no effect.
func (i *Informer[T]) UseLogger(log *zap.Logger) { i.pipeline.useLogger(log) }

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
	if i.o.Hold != nil {
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
func (i *Informer[T]) Synced() <-chan struct{} { return i.pipeline.ends().synced }

// Stopped returns a channel that is closed when Run is ending: the cache does not change any more, and no handler can
// join.
func (i *Informer[T]) Stopped() <-chan struct{} { return i.pipeline.ends().stopped }

// Undecodable returns the objects whose newest state is not in the cache because it could not be decoded or
// transformed.
func (i *Informer[T]) Undecodable() []*api.UndecodableError {
	return i.pipeline.source().Undecodable()
}

// Run fills the cache, keeps it up to date and calls the handlers until ctx ends. It then waits for the calls in flight
// and for all its goroutines, drops the pending notifications and returns nil. An error of OnUndecodable also ends Run,
// and Run returns it. Run can be called once; the next call returns ErrRunning.
func (i *Informer[T]) Run(ctx context.Context) error { return i.pipeline.run(ctx) }

// AddIndex adds an index to the informer's cache, before or during Run. It corresponds to AddIndexers of client-go. The
// returned value reads the index, so an index has no name, and its values have a type.
func AddIndex[T api.Object, V comparable](i *Informer[T], f cache.IndexFunc[T, V]) *cache.Index[T, V] {
	return cache.AddIndex(i.indexer, f)
}

func (o Options[T]) reflector() reflector.Options[T] {
	return reflector.Options[T]{
		Selector: o.Selector, Transform: o.Transform, Gate: o.Gate, Logger: o.Logger,
		Memory: o.Memory, Hooks: o.Hooks, Tuning: o.Tuning,
	}
}
