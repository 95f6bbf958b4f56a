package reflector

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

// Store receives the collection from a reflector, on one goroutine. deltafifo.DeltaFIFO is a Store.
type Store[T any] interface {
	// Get returns the newest state of an object that the store received.
	Get(key api.Key) (T, bool)
	// Lookup is Get for a key in a buffer. The store must not keep the buffer.
	Lookup(namespace, name []byte) (T, bool)
	// KnownLen returns the number of objects that Get would find.
	KnownLen() int

	// Put adds or changes an object. Here and below, version is the version that the collection reaches with the
	// change.
	Put(object T, version string)
	// Delete deletes an object, of which it gets the last state.
	Delete(object T, version string)
	// DeleteKey deletes an object whose last state is unknown.
	DeleteKey(key api.Key, version string)
	// Replace sets the whole collection. An object that has not changed is the pointer that Get returns.
	Replace(list []T, version string)
	// Bookmark notes a version that the collection has reached without a change.
	Bookmark(version string)
}

// Options configures a Reflector. The zero value suits most programs.
type Options[T any] struct {
	// Selector restricts the collection.
	Selector api.Selector
	// Transform changes an object before it is stored, in place or as a copy. The reflector calls it once for each
	// state that is stored, and for the last state that comes with a deletion. After an error, a panic, or a change of
	// the namespace, the name, the UID or the version, the object counts as undecodable. While a call blocks, OnWait is
	// not called, so an informer may not have processed earlier events of the same read of the connection.
	Transform func(T) (T, error)
	// OnWait is called with true on the reflector's goroutine before a watch waits for its next event, if its source
	// calls api.Options.OnWait. It is then called with false when the watch has ended.
	OnWait func(more bool)
	// Gate bounds the number of lists of several reflectors. It may be nil.
	Gate Gate
	// NotOlderThan is the oldest version that the first list may have. The default accepts any version. Set it if the
	// store has newer objects of the same server already.
	NotOlderThan string
	// Logger may be nil; then nothing is logged.
	Logger *zap.Logger

	Memory
	Hooks
	Tuning
}

// Memory decides what objects take in memory. The zero value takes the least.
type Memory struct {
	// KeepManagedFields keeps metadata.managedFields. The default drops them.
	KeepManagedFields bool
	// NoSharedParts decodes each object whole. By default, objects share equal parts (api.Options.ShareParts): an
	// update that changes only the status takes the spec of the previous state, and replicas have one slice of
	// containers. They take less memory and time. A change to a stored object, which is always wrong, then shows in
	// other objects too; informer.Options.Mutations finds it in tests. With a Transform, which may change objects in
	// place, nothing is shared.
	NoSharedParts bool
}

// Hooks are functions that see what a reflector does. Each may be nil.
type Hooks struct {
	// OnUndecodable is called for each object that cannot be decoded into T, for which Transform fails, or that cannot
	// belong to the collection (ErrMalformed), on the reflector's goroutine. If it returns an error, Run returns that
	// error; Fail always does. By default such an object is counted and logged. Whether or not Run ends, the last good
	// state of the object stays. A call that blocks delays the same events as one of Transform.
	OnUndecodable func(*api.UndecodableError) error
	// OnError is called with the error of every failed list, watch and probe. A source without WatchLists
	// (api.ErrNoWatchList) is no failure. For a probe it is called on a goroutine beside the watch, and for all others
	// on the reflector's goroutine, which receives nothing until it returns. Two calls never overlap. Run waits for a
	// call.
	OnError func(error)
	// OnRequest is called after every request, on the goroutines of OnError, for metrics. A probe that ends with its
	// watch is not one. It must not block.
	OnRequest func(Request)
}

// Tuning is what few programs change. The zero value is right for kube-apiserver.
type Tuning struct {
	// NoWatchList makes the reflector list in pages only, for servers whose WatchLists (KEP-3157) are not reliable.
	NoWatchList bool
	// PageSize is the limit of a page. 0 means 500, but no limit for lists that a watch cache can answer.
	PageSize int64
	// MaxListObjects bounds the objects of a list, so that a list without an end cannot fill the memory. A longer list
	// fails with ErrEndlessList. 0 means 5 million. A list in pages also fails after an hour.
	MaxListObjects int
	// NoListReuse decodes, transforms and passes on every object of a list. The default keeps the known object if its
	// UID and version are the same. Set it for sources that change objects without their version: see
	// Status.Unversioned. An object that the source returns as the same pointer again counts as unchanged.
	NoListReuse bool
	// NoWatchDedup passes on an event whose object is known in the same version. The default drops such an event as a
	// repetition, unless it is a deletion. An event of an older version is always dropped.
	NoWatchDedup bool

	// MinWatchTimeout is the smallest timeout of a watch. Each watch requests a random timeout between this and twice
	// this, in whole seconds. The reflector ends a watch that the server keeps open for half a minute longer. 0 means 5
	// minutes.
	MinWatchTimeout time.Duration
	// BackoffBase and BackoffMax bound the pause after a failure. It doubles from the base to the maximum. Jitter adds
	// a random time, at most the pause itself. 0 means 800 ms and 30 s. The first list after an outage waits for a
	// random time of up to five seconds instead, or up to BackoffMax if that is less.
	BackoffBase, BackoffMax time.Duration
	// MaxRetryAfter bounds the pause that a server asks for with a Retry-After header, or with retryAfterSeconds in a
	// Status. A longer pause is cut to this, logged, and shown in Status. Jitter is added as after every failure. 0
	// means 2 minutes.
	MaxRetryAfter time.Duration
	// Rand returns numbers in [0,1) for jitter. Nil means math/rand/v2.
	Rand func() float64
}

const (
	watchListIdle    = 30 * time.Second // a WatchList fails after this time without progress
	watchListOverdue = 60 * time.Second // and this long after its first change, if its initial state is still incomplete
	probeTimeout     = 10 * time.Second // a probe fails after this time, so that another one can follow within confirmWithin
	pageIdle         = 90 * time.Second // a page fails after this time without progress: servers work on a request for a minute
	watchGrace       = 30 * time.Second // how long a server may keep a watch open after its timeout
)

// Reflector keeps a store equal to a collection on a server: it lists once and then watches. It corresponds to
// cache.Reflector of client-go.
type Reflector[T api.Object] struct {
	lw     api.ListerWatcher[T]
	store  Store[T]
	o      Options[T]
	limits *limits
	log    *zap.Logger
	rand   func() float64

	status          *sharedStatus
	undecodable     *undecodables
	started         atomic.Bool
	watching        atomic.Pointer[watchdog] // of the watch in progress, after its initial state; otherwise nil
	scope           scope
	versions        versionUse // this and the fields below belong to the goroutine of Run
	malformedLogged int        // malformed objects of the list or watch in progress that were logged
	fatal           error      // the callbacks of a request set it to end Run
	leave           func()     // of the Gate, while a list is in progress; otherwise nil
}

// New returns a reflector that fills store from lw.
func New[T api.Object](lw api.ListerWatcher[T], store Store[T], o Options[T]) *Reflector[T] {
	r := &Reflector[T]{
		lw: lw, store: store, o: o,
		limits:      newLimits(!o.NoWatchList, o.BackoffBase, o.BackoffMax),
		rand:        o.Rand,
		status:      newSharedStatus(),
		undecodable: newUndecodables(),
		scope:       scopeOf(lw.Collection()),
		versions:    versionUse{reuse: !o.NoListReuse, dedup: !o.NoWatchDedup},
	}
	r.o.MinWatchTimeout = orDefault(o.MinWatchTimeout, 5*time.Minute)
	if r.o.MaxListObjects <= 0 {
		r.o.MaxListObjects = defaultMaxListObjects
	}
	r.o.MaxRetryAfter = orDefault(o.MaxRetryAfter, 2*time.Minute)
	if r.rand == nil {
		r.rand = rand.Float64
	}
	r.setLogger(o.Logger)
	return r
}

// UseLogger sets the logger if Options.Logger is nil. It must be called before Run.
func (r *Reflector[T]) UseLogger(log *zap.Logger) {
	if r.o.Logger == nil {
		r.setLogger(log)
	}
}

func (r *Reflector[T]) setLogger(log *zap.Logger) {
	if log == nil {
		log = zap.NewNop()
	}
	fields := []zap.Field{zap.Stringer("resource", r.resource())}
	for _, part := range []struct{ name, value string }{
		{"namespace", r.scope.namespace}, {"labels", r.o.Selector.Labels}, {"fields", r.o.Selector.Fields},
	} {
		if part.value != "" {
			fields = append(fields, zap.String(part.name, part.value))
		}
	}
	r.log = log.With(fields...)
}

// Logger returns the logger of this reflector, whose entries name the collection.
func (r *Reflector[T]) Logger() *zap.Logger { return r.log }

// Name describes the collection in a few words: its resource, and its namespace and selectors if it has any.
func (r *Reflector[T]) Name() string {
	name := r.resource().String()
	if r.scope.namespace != "" {
		name += " in " + r.scope.namespace
	}
	if r.o.Selector.Labels != "" {
		name += ", labels " + r.o.Selector.Labels
	}
	if r.o.Selector.Fields != "" {
		name += ", fields " + r.o.Selector.Fields
	}
	return name
}

func newLimits(watchLists bool, backoffBase, backoffMax time.Duration) *limits {
	backoffMax = orDefault(backoffMax, 30*time.Second)
	return &limits{
		watchList:      watchLists,
		watchListPause: 10 * time.Minute,
		backoffBase:    orDefault(backoffBase, 800*time.Millisecond),
		backoffMax:     backoffMax,
		// A pause lasts up to twice the maximum, and must not count as a time without a failure.
		backoffReset: max(2*time.Minute, 4*backoffMax),
		shortWatch:   time.Second,
		relistSpread: min(5*time.Second, backoffMax),
		// kube-apiserver looks about once a second which watches need their bookmark of this minute.
		maxSilence:    75 * time.Second,
		probeDelay:    time.Second,
		confirmWithin: 30 * time.Second,
	}
}

// orDefault returns d, or otherwise if d is not positive.
func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Status returns what the reflector is doing, its errors and its counters. It may be called on any goroutine.
func (r *Reflector[T]) Status() Status { return r.status.read() }

// Undecodable returns the objects whose newest state could not be decoded, in no order. It may be called on
// any goroutine.
func (r *Reflector[T]) Undecodable() []*api.UndecodableError { return r.undecodable.list() }

// Relist ends the watch in progress with ErrMissed, so that a consistent list follows: at once, or after a backoff if
// other failures came before. Use it if the store misses a change that the server has. Relist returns false, and does
// nothing, while no watch is in progress: a list follows, or is in progress. It may be called on any goroutine.
func (r *Reflector[T]) Relist() bool {
	dog := r.watching.Load()
	if dog == nil {
		return false
	}
	dog.cancel(ErrMissed)
	return true
}

// Run lists and watches until ctx ends, and returns nil then. It also returns if OnUndecodable returns an error, with
// that error. Run panics if it is called twice.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if !r.started.CompareAndSwap(false, true) {
		panic("reflector: Run was called twice; create a new Reflector for each Run")
	}
	defer r.status.phase(Stopped)
	defer r.leaveGate()
	t := &turn[T]{}
	t.s = r.limits.first(time.Now())
	t.s.version = r.o.NotOlderThan
	for {
		if t.s.lists() && !r.enterGate(ctx, &t.s) {
			return nil
		}
		err := r.perform(ctx, t)
		if err != nil && t.res.outcome != noWatchList { // a list follows that at once
			r.leaveGate()
		}
		if ctx.Err() != nil {
			return nil
		}
		if r.fatal != nil {
			return r.fatal
		}
		if !r.sleep(ctx, r.decide(t, err), t.s.spread) {
			return nil
		}
	}
}

// turn is a request, its result and its place between the others. It is one value on the heap, because the stack of the
// goroutine stays small if the functions that are active during a watch pass no large values.
type turn[T api.Object] struct {
	s     state
	res   result
	pages listing[T]
}

// decide decides the next request, reports the last one and returns the pause between the two.
func (r *Reflector[T]) decide(t *turn[T], err error) time.Duration {
	do, res := t.s.do, &t.res
	next, wait := r.limits.next(t.s, *res)
	if err == nil && !next.failures.at.Equal(t.s.failures.at) {
		err = ErrEndedEarly
	}
	if r.o.OnRequest != nil {
		r.o.OnRequest(newRequest(do, *res, err, wait))
	}
	refused := res.outcome == rejected && (do == page || do == watch)
	if t.s = next; t.s.list.token == "" {
		t.pages = listing[T]{} // free the staged objects before the pause
	}
	r.status.confirm(&t.s.confirm)
	r.report(&t.s, res, err, wait, refused)
	return wait
}

// perform makes the request that the state describes.
func (r *Reflector[T]) perform(ctx context.Context, t *turn[T]) error {
	s, res := &t.s, &t.res
	*res = result{}
	r.status.begin(s)
	if s.list.token == "" {
		r.versions.compared, r.malformedLogged = 0, 0
	}
	started := time.Now()
	if s.confirm.down {
		s.confirm.at = started // the server may answer from now on
	}
	var err error
	switch s.do {
	case page:
		err = r.fetchPage(ctx, s, &t.pages, res)
	default:
		err = r.watch(ctx, s, res)
	}
	res.outcome, res.retryAfter = classify(err), min(retryAfter(err), r.o.MaxRetryAfter)
	if res.outcome == noWatchList && (s.do != watchList || res.synced) {
		res.outcome = broken // the request was not for a WatchList
	}
	res.at = time.Now()
	res.lasted = res.at.Sub(started)
	return err
}

// sleep waits for d and a random time of up to d and spread. It reports whether ctx is still alive.
func (r *Reflector[T]) sleep(ctx context.Context, d, spread time.Duration) bool {
	d = r.jitter(d) + time.Duration(r.rand()*float64(spread))
	if d <= 0 {
		return ctx.Err() == nil
	}
	r.status.sleep(time.Now().Add(d))
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter returns d and a random time of up to d.
func (r *Reflector[T]) jitter(d time.Duration) time.Duration {
	return d + time.Duration(r.rand()*float64(d))
}

// report updates the status, logs a failure and calls OnError. A refused list or watch is a warning, because a person
// must correct it, for example a missing permission. Broken watches, and servers without WatchList, are normal.
func (r *Reflector[T]) report(s *state, res *result, err error, wait time.Duration, refused bool) {
	if res.outcome == noWatchList { // neither a failure nor a success
		r.log.Info("the source does not support WatchLists; listing in pages", zap.NamedError("err", err))
		return
	}
	asked := retryAfter(err)
	r.status.end(err, s.failures.count, res.at, asked)
	if err == nil {
		return
	}
	if asked > r.o.MaxRetryAfter {
		r.log.Warn("the server asked for a pause longer than MaxRetryAfter", zap.Duration("asked", asked), zap.Duration("after", wait))
	}
	level := zap.InfoLevel
	if refused {
		level = zap.WarnLevel
	}
	r.log.Log(level, "the request failed", zap.NamedError("err", err), zap.String("rv", s.version),
		zap.Int("attempt", s.failures.count), zap.Duration("after", wait))
	if r.o.OnError != nil {
		r.o.OnError(err)
	}
}

// options returns the options of the next request.
func (r *Reflector[T]) options(s *state) api.Options[T] {
	timeout := max(time.Second, r.o.MinWatchTimeout+time.Duration(r.rand()*float64(r.o.MinWatchTimeout)))
	o := api.Options[T]{ListOptions: s.listOptions(r.o.PageSize, timeout)}
	o.LabelSelector, o.FieldSelector = r.o.Selector.Labels, r.o.Selector.Fields
	o.DropManagedFields, o.ShareParts = !r.o.KeepManagedFields, !r.o.NoSharedParts && r.o.Transform == nil
	if s.do == page && r.asksKnown(s) {
		o.Known = r.store.Lookup
	}
	return o
}
