package reflector

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

// Store is what a reflector fills. deltafifo.DeltaFIFO is one. A reflector calls it from one goroutine only.
type Store[T any] interface {
	// Get answers with the newest state that the store was given.
	Get(key api.Key) (T, bool)
	// Lookup is Get for a key that stands in a buffer, which it does not keep.
	Lookup(namespace, name []byte) (T, bool)
	// KnownLen is how many objects Get would find.
	KnownLen() int

	// Put is a new or changed object. The version, here and below, is what the collection has reached with the change.
	Put(object T, version string)
	// Delete is the end of an object, with its last state.
	Delete(object T, version string)
	// DeleteKey is the end of an object whose last state was not seen.
	DeleteKey(key api.Key, version string)
	// Replace is the whole collection. Objects of a UID and version that the store has may be ignored.
	Replace(list []T, version string)
	// Overwrite is Replace where they may not: the server went back, and the same versions say something else now.
	Overwrite(list []T, version string)
	// Bookmark is a version that was reached without a change.
	Bookmark(version string)
}

// Options of a Reflector. The zero value is what most want.
type Options[T any] struct {
	// LabelSelector and FieldSelector restrict what is listed and watched.
	LabelSelector string
	FieldSelector string

	// DisableStreaming keeps to lists in pages, for servers whose streaming lists (KEP-3157) are not to be trusted.
	DisableStreaming bool
	// PageSize is the limit of a page. 0 is 500, and leaves lists that a watch cache can answer unpaged.
	PageSize int64
	// MaxListObjects bounds how many objects a list may bring, so that a server whose list has no end cannot use up the
	// memory: one more is ErrEndlessList. 0 is 5 million. A list in pages may take an hour in any case.
	MaxListObjects int
	// KeepManagedFields keeps metadata.managedFields, which are dropped otherwise.
	KeepManagedFields bool
	// NoListReuse decodes, transforms and passes on every object of a list. Otherwise an object of which the store has the
	// UID and the version stands for itself: see Status.Unversioned for sources where it must not.
	NoListReuse bool
	// NoWatchDedup passes on an event whose version the store has of its object already. Otherwise such an event is dropped
	// as sent twice, unless it is a deletion. An event of an older version is dropped in either case.
	NoWatchDedup bool

	// Transform changes an object before it is stored; it may do so in place. It is called exactly once for each state
	// of an object that is stored, and for the last state that comes with the deletion of one. An error or a panic makes
	// the object an undecodable one, and so does a changed namespace, name, UID or version.
	Transform func(T) (T, error)
	// OnUndecodable is called for each object that cannot be decoded into T, or that matches ErrMalformed, on the
	// reflector's goroutine. An error ends Run with that error: Fail is one that does so for every object. By default such
	// an object is counted and logged, and the last good state of its key stays.
	OnUndecodable func(*api.UndecodableError) error
	// OnError is called with every error that a list or a watch ended with, on the reflector's goroutine.
	OnError func(error)
	// OnRequest is called with every request that has ended, on the reflector's goroutine.
	OnRequest func(Request)

	// MinWatchTimeout is how long the server is asked to keep a watch open at least; a watch's time is chosen at random
	// between this and twice this, in whole seconds. A watch that the server leaves open for half a minute longer is
	// given up. 0 is 5 minutes.
	MinWatchTimeout time.Duration
	// BackoffBase and BackoffMax bound the pause after a failure, which doubles from one to the other, and to which up
	// to as much again is added at random. 0 is 800 ms, and 30 s. The first list after an outage waits
	// for no such pause, but at random for up to five seconds, or BackoffMax where that is less.
	BackoffBase, BackoffMax time.Duration
	// MaxRetryAfter bounds the pause that a server may ask for with Retry-After, in a header, or in the Status of an
	// answer or of an ERROR event. A longer one is cut to this, logged, and shown in Status. As after every failure, up to
	// as much again is added at random. 0 is 2 minutes.
	MaxRetryAfter time.Duration
	// Rand returns numbers in [0,1) for the jitter. Nil is math/rand/v2.
	Rand func() float64

	// Logger is silent when nil.
	Logger *zap.Logger
}

const (
	streamIdle    = 30 * time.Second // a streaming list without anything new for so long has stalled
	streamOverdue = 60 * time.Second // and so has one that is past the initial objects for so long without its end
	probeTimeout  = 45 * time.Second // a probe takes no longer to find that no server is there
	pageIdle      = 90 * time.Second // and so has a page: servers work on a request for a minute
	watchGrace    = 30 * time.Second // how much longer than it was asked to a server may keep a watch open
)

// Reflector keeps a store equal to a collection on a server: it lists once, and then watches.
// It corresponds to cache.Reflector of client-go. It differs in that it resumes a watch wherever it can, and in that its
// policy is one pure function.
type Reflector[T api.Object] struct {
	lw     api.ListerWatcher[T]
	store  Store[T]
	o      Options[T]
	limits limits
	log    *zap.Logger
	rand   func() float64

	status      *statusBoard
	undecodable *undecodables
	started     atomic.Bool
	trust       trust // of the goroutine of Run alone, as what follows
	scope       scope
	named       int   // malformed objects of the list or the watch in progress that were logged
	fatal       error // what ends Run; set by the callbacks of a request
}

// New returns a reflector that will fill store from lw.
func New[T api.Object](lw api.ListerWatcher[T], store Store[T], o Options[T]) *Reflector[T] {
	r := &Reflector[T]{
		lw: lw, store: store, o: o,
		limits:      newLimits(!o.DisableStreaming, o.BackoffBase, o.BackoffMax),
		log:         o.Logger,
		rand:        o.Rand,
		status:      newStatusBoard(),
		undecodable: newUndecodables(),
		scope:       scopeOf(lw),
		trust:       trust{reuse: !o.NoListReuse, dedup: !o.NoWatchDedup},
	}
	r.o.MinWatchTimeout = orDefault(o.MinWatchTimeout, 5*time.Minute)
	if r.o.MaxListObjects <= 0 {
		r.o.MaxListObjects = defaultMaxListObjects
	}
	r.o.MaxRetryAfter = orDefault(o.MaxRetryAfter, 2*time.Minute)
	if r.log == nil {
		r.log = zap.NewNop()
	}
	if r.rand == nil {
		r.rand = rand.Float64
	}
	r.log = r.log.With(zap.Stringer("resource", lw.Resource()))
	return r
}

func newLimits(streaming bool, backoffBase, backoffMax time.Duration) limits {
	backoffMax = orDefault(backoffMax, 30*time.Second)
	return limits{
		streaming:   streaming,
		streamPause: 10 * time.Minute,
		backoffBase: orDefault(backoffBase, 800*time.Millisecond),
		backoffMax:  backoffMax,
		// A pause lasts up to twice the maximum, and must not be taken for a time in which all was well.
		backoffReset: max(2*time.Minute, 4*backoffMax),
		shortWatch:   time.Second,
		relistSpread: min(5*time.Second, backoffMax),
		maxSilence:   time.Minute,
	}
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Status says what the reflector is doing and how it fares. It may be called from anywhere.
func (r *Reflector[T]) Status() Status { return r.status.read() }

// Undecodable returns the objects whose newest state could not be decoded, in no order. It may be called from anywhere.
func (r *Reflector[T]) Undecodable() []*api.UndecodableError { return r.undecodable.list() }

// Run lists and watches until ctx ends, and then returns nil. The only other reason to return is an error of
// OnUndecodable. A reflector runs once.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if !r.started.CompareAndSwap(false, true) {
		panic("reflector: Run was called before, and a reflector runs once")
	}
	defer r.status.phase(Stopped)
	s := r.limits.first(time.Now())
	var pages listing[T]
	for {
		o, err := r.perform(ctx, s, &pages)
		if ctx.Err() != nil {
			return nil
		}
		if r.fatal != nil {
			return r.fatal
		}
		next, wait := r.limits.next(s, o)
		if err == nil && !next.failedAt.Equal(s.failedAt) {
			err = ErrNothing
		}
		if r.o.OnRequest != nil {
			r.o.OnRequest(ended(s.do, o, err, wait))
		}
		refused := o.ending == rejected && (s.do == page || s.do == watch)
		if s = next; s.pages == 0 {
			pages = listing[T]{} // whatever was staged is not waited with
		}
		r.report(s, o, err, wait, refused)
		if !r.sleep(ctx, wait, s.spread) {
			return nil
		}
	}
}

// perform makes the one request that s calls for.
func (r *Reflector[T]) perform(ctx context.Context, s state, pages *listing[T]) (outcome, error) {
	r.status.begin(s)
	if s.pages == 0 {
		r.trust.compared, r.named = 0, 0
	}
	started := time.Now()
	var o outcome
	var err error
	switch s.do {
	case page:
		o, err = r.fetchPage(ctx, s, pages)
	case probe:
		err = r.probe(ctx, s)
	default:
		o, err = r.watch(ctx, s)
	}
	o.ending, o.retryAfter = classify(err), min(retryAfter(err), r.o.MaxRetryAfter)
	if o.ending == cannotStream && (s.do != stream || o.synced) {
		o.ending = broken // it was not asked to
	}
	o.at = time.Now()
	o.lasted = o.at.Sub(started)
	return o, err
}

// sleep waits for d and, at random, up to d and spread more. It says whether ctx is still alive.
func (r *Reflector[T]) sleep(ctx context.Context, d, spread time.Duration) bool {
	if d+spread > 0 {
		d += time.Duration(r.rand() * float64(d+spread))
	}
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

// report tells whoever asks how a request ended, and how it goes on. That it was refused stands out: watches break off
// every day, and not every server streams lists, but this needs somebody's hand.
func (r *Reflector[T]) report(s state, o outcome, err error, wait time.Duration, refused bool) {
	if o.ending == cannotStream { // which is no failure, and overcomes none
		r.log.Info("source cannot stream lists, listing in pages", zap.NamedError("err", err))
		return
	}
	asked := retryAfter(err)
	r.status.end(err, s.attempt, o.at, asked)
	if err == nil {
		return
	}
	if asked > r.o.MaxRetryAfter {
		r.log.Warn("server asked for a longer pause than it gets", zap.Duration("asked", asked), zap.Duration("after", wait))
	}
	level := zap.InfoLevel
	if refused {
		level = zap.WarnLevel
	}
	r.log.Log(level, "request ended with an error", zap.NamedError("err", err), zap.String("rv", s.version),
		zap.Int("attempt", s.attempt), zap.Duration("after", wait))
	if r.o.OnError != nil {
		r.o.OnError(err)
	}
}

// options completes what s asks for with what every request of this reflector has.
func (r *Reflector[T]) options(s state) api.Options[T] {
	timeout := max(time.Second, r.o.MinWatchTimeout+time.Duration(r.rand()*float64(r.o.MinWatchTimeout)))
	o := api.Options[T]{ListOptions: s.listOptions(r.o.PageSize, timeout)}
	o.LabelSelector, o.FieldSelector = r.o.LabelSelector, r.o.FieldSelector
	o.DropManagedFields = !r.o.KeepManagedFields
	if s.do == page && r.reuses(s) {
		o.Known = r.store.Lookup
	}
	return o
}
