package stagger

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
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

// Start decides when the informers of one program list. It is a reflector.Gate, so scopes.Options can have it too.
type Start struct {
	o     Options
	lists reflector.Gate

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
	return &Start{o: o, lists: reflector.MaxLists(o.MaxLists)}
}

// Enter implements reflector.Gate. It waits for the jitter, and until fewer lists are in progress.
func (s *Start) Enter(ctx context.Context) (leave func()) {
	s.once.Do(func() { s.begin = time.Now().Add(time.Duration(s.o.Rand() * float64(max(0, s.o.Jitter)))) })
	if d := time.Until(s.begin); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return s.lists.Enter(ctx)
}

// Spread returns the arguments of informer.New, for an informer whose lists wait for their turn:
//
//	inf := informer.New(stagger.Spread(start, pods, informer.Options[*Pod]{}))
//
// The first WatchList requests any version, so the API server need not ask etcd how new its watch cache is. The price:
// the first state may be older than one that an earlier process saw; the watch then brings what is missing. A result
// belongs to one informer. Users of a factory.Factory share it if each passes the results of the same call to
// factory.Shared.
func Spread[T api.Object](s *Start, source api.ListerWatcher[T], o informer.Options[T]) (api.ListerWatcher[T], informer.Options[T]) {
	o.Gate = s
	return &spread[T]{api.Wrapper[T]{ListerWatcher: source}, new(atomic.Bool)}, o
}

// spread is a source whose first WatchList accepts any version.
type spread[T api.Object] struct {
	api.Wrapper[T]
	// exact says that a list was complete or requested a version: later lists must not accept any version.
	exact *atomic.Bool
}

// Packed returns a source of the same objects as bytes, or nil if the source cannot keep bytes. Package packed uses it.
func (l *spread[T]) Packed(with func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed] {
	if packer, ok := l.ListerWatcher.(codec.PackedSource); ok {
		if source := packer.Packed(with); source != nil {
			return &spread[*codec.Packed]{api.Wrapper[*codec.Packed]{ListerWatcher: source}, l.exact}
		}
	}
	return nil
}

// List lists the source. A list of one object is no list of the collection: a reflector and package scale/shardedsource
// ask so for a version, also before the first list.
func (l *spread[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	meta, err := l.ListerWatcher.List(ctx, o, each)
	if err == nil && o.Limit != 1 {
		l.exact.Store(true)
	}
	return meta, err
}

// Watch watches the source.
func (l *spread[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	if o.SendInitialEvents == nil || o.ResourceVersion != "" {
		l.exact.Store(true)
	}
	if l.exact.Load() {
		return l.ListerWatcher.Watch(ctx, o)
	}
	o.ResourceVersion = "0"
	return func(yield func(api.Event[T], error) bool) {
		for event, err := range l.ListerWatcher.Watch(ctx, o) {
			if !yield(event, err) {
				return
			}
			if event.InitialEventsEnd {
				l.exact.Store(true)
			}
		}
	}
}
