package clientgo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/leatproject/leat/adapter/zapslog"
	"github.com/leatproject/leat/api"
	leatcache "github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
)

// Object is what informers of client-go hold: a pointer to a type with metadata, such as *corev1.Pod.
type Object interface {
	metav1.Object
	runtime.Object
}

// Options are the options of an informer. The zero value is a good default.
type Options[T Object] struct {
	// Options are those of leat's informer. SetTransform replaces Transform, and a watch error handler is called in
	// addition to OnError. CrashOnPanic has no effect; see the package comment.
	informer.Options[T]
	// Indexers are the first indexers.
	Indexers cache.Indexers
}

// New returns a SharedIndexInformer over an informer of leat. lw is a client of leat, such as an
// *apiclient.TypedClient, or anything else that leat can list and watch. It panics if two indexers conflict.
func New[T Object](lw api.ListerWatcher[T], o Options[T]) cache.SharedIndexInformer {
	s := &sharedInformer[T]{lw: lw, o: o, onWatchError: onlyLogged}
	s.transform, s.nowhere = s.marking(o.Transform), sync.OnceValue(s.newNowhere)
	s.build()
	if err := s.AddIndexers(o.Indexers); err != nil {
		panic(err)
	}
	return s
}

// sharedInformer is an informer of leat behind client-go's interface.
type sharedInformer[T Object] struct {
	lw      api.ListerWatcher[T]
	o       Options[T]
	current atomic.Pointer[core[T]]
	stopped atomic.Bool
	nowhere func() *cache.Reflector

	mu           sync.Mutex // guards the fields below, and changes of current
	started      bool
	shortest     time.Duration // the shortest resync period of the handlers before the start
	handedOut    bool          // a caller has a channel or a registration of the informer
	transform    func(T) (T, error)
	onWatchError cache.WatchErrorHandlerWithContext
	ctx          context.Context // of Run; nil before
}

// core is an informer with its indexes by name. The map never changes.
type core[T Object] struct {
	informer *informer.Informer[T]
	source   *transforming[T] // nil if the informer holds objects in another form
	indexers cache.Indexers
	indexes  map[string]*leatcache.Index[T, string]
}

// build makes the informer. Rule: a transform runs in the source, before the informer looks at the object. Reason: it
// may then change everything, even the name, as in client-go. An informer that holds packed objects transforms them
// itself, because only it can pack them again.
func (s *sharedInformer[T]) build() {
	o := s.o.Options
	o.OnError, o.CrashOnPanic = s.watchFailed, true
	c := &core[T]{indexers: cache.Indexers{}}
	if o.Hold != nil {
		o.Transform = s.transform
		c.informer = informer.New(s.lw, o)
	} else {
		c.source = &transforming[T]{api.Wrapper[T]{ListerWatcher: s.lw}, s.transform}
		o.Transform = nil
		c.informer = informer.New[T](c.source, o)
	}
	s.current.Store(c)
}

// onlyLogged is the watch error handler of an informer without another one: leat logs the errors by itself.
func onlyLogged(context.Context, *cache.Reflector, error) {}

// watchFailed passes the error of a request to the handlers.
func (s *sharedInformer[T]) watchFailed(err error) {
	s.mu.Lock()
	ctx, handle := s.ctx, s.onWatchError
	s.mu.Unlock()
	if s.o.OnError != nil {
		s.o.OnError(err)
	}
	handle(ctx, s.nowhere(), err)
}

// newNowhere returns the reflector that watch error handlers get, because they read its name and its description. It
// never runs.
func (s *sharedInformer[T]) newNowhere() *cache.Reflector {
	return cache.NewReflectorWithOptions(&cache.ListWatch{}, nil, cache.NewStore(cache.MetaNamespaceKeyFunc),
		cache.ReflectorOptions{Name: "leat", TypeDescription: s.name()})
}

func (s *sharedInformer[T]) informer() *informer.Informer[T] { return s.current.Load().informer }

// Run runs the informer until stopCh is closed.
func (s *sharedInformer[T]) Run(stopCh <-chan struct{}) {
	s.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext runs the informer until ctx ends, and logs to the logger of ctx unless Options.Logger is set. A second
// call logs a warning and returns.
func (s *sharedInformer[T]) RunWithContext(ctx context.Context) {
	if !s.start(ctx) {
		klog.FromContext(ctx).Info("Warning: the informer has started; run it only once", "informer", s.name())
		return
	}
	defer s.stopped.Store(true)
	log := klog.LoggerWithValues(klog.FromContext(ctx), "informer", s.name())
	s.informer().UseLogger(zap.New(zapslog.NewCore(logr.ToSlogHandler(log)), zap.AddCaller()))
	if err := s.informer().Run(ctx); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "The informer ended", "informer", s.name())
	}
}

func (s *sharedInformer[T]) start(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return false
	}
	s.started, s.ctx = true, ctx
	return true
}

// name describes the informer for logs.
func (s *sharedInformer[T]) name() string {
	var object T
	if r := s.lw.Collection().Resource; r.Plural != "" {
		return r.String()
	}
	if described, ok := s.lw.(fmt.Stringer); ok {
		return described.String()
	}
	return fmt.Sprintf("%T", object)
}

// HasSynced reports whether the cache holds the first list.
func (s *sharedInformer[T]) HasSynced() bool { return isClosed(s.informer().Synced()) }

// HasSyncedChecker returns a checker that is done when the cache holds the first list.
func (s *sharedInformer[T]) HasSyncedChecker() cache.DoneChecker {
	s.handOut()
	return checker{"SharedIndexInformer " + s.name(), s.informer().Synced()}
}

// handOut notes that a caller gets something that belongs to the current informer.
func (s *sharedInformer[T]) handOut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handedOut = true
}

// LastSyncResourceVersion returns the exact version of the cache.
func (s *sharedInformer[T]) LastSyncResourceVersion() string { return s.informer().ResourceVersion() }

// IsStopped reports whether Run has returned.
func (s *sharedInformer[T]) IsStopped() bool { return s.stopped.Load() }

var errStarted = errors.New("clientgo: the informer has started")

// SetWatchErrorHandler sets the function that gets the error of each failed list and watch. Its reflector is not the
// one that failed and has no state.
func (s *sharedInformer[T]) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext is SetWatchErrorHandler for a function that takes the context of Run. Nil stands for
// the default, which is only a log entry, as in client-go.
func (s *sharedInformer[T]) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	if s.onWatchError = handler; handler == nil {
		s.onWatchError = onlyLogged
	}
	return nil
}

// SetTransform sets the transform. It returns an error after the start, and, if the informer holds packed objects, also
// after a handler or a checker was handed out.
func (s *sharedInformer[T]) SetTransform(f cache.TransformFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return errStarted
	}
	own := s.o.Transform
	if f != nil {
		own = func(object T) (T, error) { return transformed[T](f(object)) }
	}
	s.transform = s.marking(own)
	c := s.current.Load()
	if c.source != nil {
		c.source.transform = s.transform
		return nil
	}
	if s.handedOut {
		return errors.New("clientgo: SetTransform of an informer with Options.Hold must come before AddEventHandler and " +
			"HasSyncedChecker; or set Options.Transform")
	}
	s.build()
	return s.addIndexers(c.indexers)
}

// marking returns a transform that cannot remove the mark of a masked object, which is in its managedFields.
func (s *sharedInformer[T]) marking(f func(T) (T, error)) func(T) (T, error) {
	masked, ok := api.As[codec.MaskSource](s.lw)
	if !ok || f == nil {
		return f
	}
	return func(object T) (T, error) {
		object, err := f(object)
		if err == nil {
			masked.Mask().Mark(object)
		}
		return object, err
	}
}

// transformed returns the result of a transform as a T.
func transformed[T Object](result any, err error) (T, error) {
	object, ok := result.(T)
	if err == nil && !ok {
		err = fmt.Errorf("clientgo: the transform returned a %T; the informer holds %T", result, object)
	}
	return object, err
}

// GetStore returns the cache.
func (s *sharedInformer[T]) GetStore() cache.Store { return s.GetIndexer() }

// GetIndexer returns the cache with its indexes.
func (s *sharedInformer[T]) GetIndexer() cache.Indexer { return store[T]{s} }

// GetController returns a Controller that runs the informer.
func (s *sharedInformer[T]) GetController() cache.Controller { return s }

// AddIndexers adds indexers, before or after the start.
func (s *sharedInformer[T]) AddIndexers(indexers cache.Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Load() {
		return errors.New("clientgo: the indexers were not added, because the informer has stopped")
	}
	return s.addIndexers(indexers)
}

// addIndexers adds indexers. The lock is held.
func (s *sharedInformer[T]) addIndexers(indexers cache.Indexers) error {
	old := s.current.Load()
	c := &core[T]{
		informer: old.informer, source: old.source,
		indexers: cache.Indexers{}, indexes: map[string]*leatcache.Index[T, string]{},
	}
	for name, f := range old.indexers {
		c.indexers[name], c.indexes[name] = f, old.indexes[name]
	}
	for name := range indexers {
		if _, exists := c.indexers[name]; exists {
			return fmt.Errorf("clientgo: the informer has an indexer %q already", name)
		}
	}
	for name, f := range indexers {
		c.indexers[name] = f
		c.indexes[name] = informer.AddIndex(c.informer, indexOf[T](name, f))
	}
	s.current.Store(c)
	return nil
}

// indexOf returns an index function of leat. The index leaves out an object for which it panics. Only the first such
// object is logged, because a wrong function mostly fails for many.
func indexOf[T Object](name string, f cache.IndexFunc) func(T) []string {
	var logged sync.Once
	return func(object T) []string {
		defer func() {
			if p := recover(); p != nil {
				logged.Do(func() {
					utilruntime.HandleErrorWithContext(context.Background(), fmt.Errorf("the index function failed: %v", p),
						"An index lacks an object", "index", name, "object", api.FormatKey(api.KeyOf(object)))
				})
				panic(p)
			}
		}()
		values, err := f(object)
		if err != nil {
			panic(err)
		}
		return values
	}
}

// checker is a DoneChecker.
type checker struct {
	name string
	done <-chan struct{}
}

// Name returns the name of what is waited for.
func (c checker) Name() string { return c.name }

// Done returns a channel that is closed when it is done.
func (c checker) Done() <-chan struct{} { return c.done }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var _ interface {
	cache.SharedIndexInformer
	cache.Controller
} = &sharedInformer[Object]{}

// resyncOf returns the option of leat for a period of client-go, where 0 means no resyncs, and where an informer
// without a period never resyncs. A handler that joins late never resyncs more often than those before the start.
func (s *sharedInformer[T]) resyncOf(period time.Duration) time.Duration {
	if period <= 0 || s.o.ResyncPeriod <= 0 {
		return -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shortest := cmp.Or(s.shortest, s.o.ResyncPeriod)
	if s.started {
		return max(period, shortest)
	}
	s.shortest = min(period, shortest)
	return period
}

// Status describes the informer as leat sees it. Callers get it with an interface that has this method, because
// client-go's interfaces do not.
func (s *sharedInformer[T]) Status() informer.Status { return s.informer().Status() }
