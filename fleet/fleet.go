package fleet

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
)

const (
	defaultJitter   = 30 * time.Second
	defaultMaxLists = 2
)

// Options are the options of a Start.
type Options struct {
	// Jitter is the longest time that the first list waits. The fleet spreads its lists over this time: 5,000 agents
	// and a minute are 83 lists a second. 0 means 30 s, and a negative value means that the first list does not wait.
	Jitter time.Duration
	// MaxLists is the largest number of lists that the program has in progress. A WatchList counts until its initial
	// state is complete. 0 means 2.
	MaxLists int
	// Rand returns a number in [0,1). Nil means math/rand/v2.
	Rand func() float64
}

// Start decides when the informers of one program list.
type Start struct {
	o     Options
	lists chan struct{} // has an element for each list in progress

	once  sync.Once
	begin time.Time // when lists may begin; once guards it
}

// NewStart returns a Start. The jitter begins with the first list that wants to begin.
func NewStart(o Options) *Start {
	if o.Jitter == 0 {
		o.Jitter = defaultJitter
	}
	if o.MaxLists <= 0 {
		o.MaxLists = defaultMaxLists
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return &Start{o: o, lists: make(chan struct{}, o.MaxLists)}
}

// acquire waits for the jitter, and until fewer lists are in progress. It returns nil if ctx has ended.
func (s *Start) acquire(ctx context.Context) *list {
	s.once.Do(func() { s.begin = time.Now().Add(time.Duration(s.o.Rand() * float64(max(0, s.o.Jitter)))) })
	if d := time.Until(s.begin); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
	select {
	case s.lists <- struct{}{}:
		l := &list{start: s}
		l.forget = context.AfterFunc(ctx, l.end)
		return l
	case <-ctx.Done():
		return nil
	}
}

// list is a list in progress. It ends with its context too, because an informer may end between two pages.
type list struct {
	start  *Start
	ended  atomic.Bool
	forget func() bool // stops waiting for the end of the context
}

// end lets another list begin. Further calls do nothing.
func (l *list) end() {
	if l.ended.CompareAndSwap(false, true) {
		<-l.start.lists
	}
}

// Spread returns the arguments of informer.New, for an informer whose lists wait for their turn:
//
//	inf := informer.New(fleet.Spread(start, pods, informer.Options[*Pod]{}))
//
// The first WatchList requests any version, so the API server need not ask etcd how new its watch cache is. The price:
// the first state may be older than one that an earlier process saw; the watch then brings what is missing. A result
// belongs to one informer. Users of an informer.Factory share it if each passes the results of the same call to
// informer.Shared.
func Spread[T api.Object](s *Start, source api.ListerWatcher[T], o informer.Options[T]) (api.ListerWatcher[T], informer.Options[T]) {
	l := &spread[T]{ListerWatcher: source, turn: &turn{start: s}}
	before := o.BeforeList
	o.BeforeList = func(ctx context.Context) {
		if before != nil {
			before(ctx)
		}
		l.turn.begin(ctx)
	}
	return l, o
}

// turn is the state of the lists of one informer. One reflector calls it, on one goroutine.
type turn struct {
	start *Start
	list  *list // nil unless a list is in progress
	exact bool  // a list was complete or requested a version: later lists must not accept any version
}

func (t *turn) begin(ctx context.Context) {
	if t.list == nil || t.list.ended.Load() {
		t.list = t.start.acquire(ctx)
	}
}

func (t *turn) end() {
	if t.list != nil {
		t.list.forget()
		t.list.end()
		t.list = nil
	}
}

// spread is a source whose lists wait for their turn.
type spread[T api.Object] struct {
	api.ListerWatcher[T]
	turn *turn
}

// Namespace returns the namespace of the source, or "".
func (l *spread[T]) Namespace() string {
	if confined, ok := l.ListerWatcher.(interface{ Namespace() string }); ok {
		return confined.Namespace()
	}
	return ""
}

// Selects reports whether the source has an object: a source of one shard has not all.
func (l *spread[T]) Selects(object T) bool {
	shard, ok := l.ListerWatcher.(interface{ Selects(object T) bool })
	return !ok || shard.Selects(object)
}

// Shard returns who drops the objects of other shards, for a source of a shard.
func (l *spread[T]) Shard() (s api.ShardStatus) {
	if shard, ok := l.ListerWatcher.(interface{ Shard() api.ShardStatus }); ok {
		s = shard.Shard()
	}
	return s
}

// Metadata returns the metadata of the source for consistency checks of an informer, or nil if the source has none. Its
// lists do not wait for their turn, because a check begins long after the first list.
func (l *spread[T]) Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata] {
	if source, ok := l.ListerWatcher.(interface {
		Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata]
	}); ok {
		return source.Metadata()
	}
	return nil
}

// Packed returns a source of the same objects as bytes, whose lists have the same turn, or nil if the source cannot
// keep bytes. Package packed uses it.
func (l *spread[T]) Packed(with func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed] {
	if packer, ok := l.ListerWatcher.(interface {
		Packed(with func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed]
	}); ok {
		if source := packer.Packed(with); source != nil {
			return &spread[*codec.Packed]{source, l.turn}
		}
	}
	return nil
}

// Packer returns the Packer of the objects, or nil if the source has none. Package packed uses it.
func (l *spread[T]) Packer() *codec.Packer[T] {
	if own, ok := l.ListerWatcher.(interface{ Packer() *codec.Packer[T] }); ok {
		return own.Packer()
	}
	return nil
}

// Codec returns the codec of the source, or nil if the source does not say. Package warmstart uses it.
func (l *spread[T]) Codec() *codec.Codec[T] {
	if own, ok := l.ListerWatcher.(interface{ Codec() *codec.Codec[T] }); ok {
		return own.Codec()
	}
	return nil
}

// List lets the next list begin after the last page, or after a failure.
func (l *spread[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	meta, err := l.ListerWatcher.List(ctx, o, each)
	if err != nil || meta.Continue == "" {
		l.turn.end()
	}
	l.turn.exact = l.turn.exact || err == nil
	return meta, err
}

// Watch lets the next list begin after the end of the initial state, or after a failure. A watch without an initial
// state lets it begin at once: a file of package warmstart may have been the list.
func (l *spread[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	if o.SendInitialEvents != nil && o.ResourceVersion == "" && !l.turn.exact {
		o.ResourceVersion = "0"
	} else {
		l.turn.exact = true
	}
	return func(yield func(api.Event[T], error) bool) {
		defer l.turn.end()
		if o.SendInitialEvents == nil || !*o.SendInitialEvents {
			l.turn.end()
		}
		for event, err := range l.ListerWatcher.Watch(ctx, o) {
			if !yield(event, err) {
				return
			}
			if event.Type == watch.Bookmark && event.InitialEventsEnd {
				l.turn.exact = true
				l.turn.end()
			}
		}
	}
}
