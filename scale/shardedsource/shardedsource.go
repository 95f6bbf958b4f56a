package shardedsource

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/codec"
	"github.com/leatproject/leat/informer"
)

// ErrGarbled matches the error of a list or a watch if the server says that it obeys the shardSelector, but its answer
// contradicts that. It is also the reason in informer.ShardStatus.
var ErrGarbled = errors.New("shardedsource: the server does not cut as the shardSelector says")

// Options configures a Source. The zero value is useful.
type Options struct {
	// Logger may be nil; then nothing is logged.
	Logger *zap.Logger
}

// Source lists and watches a shard of a collection. It is an api.ListerWatcher[T] for one informer, or for one scope.
type Source[T api.Object] struct {
	from  api.ListerWatcher[T]
	outer informer.Sharded[T] // from, if it has a shard only; else nil
	*decision
}

func newSource[T api.Object](from api.ListerWatcher[T], d *decision) *Source[T] {
	outer, _ := api.As[informer.Sharded[T]](from)
	return &Source[T]{from, outer, d}
}

// New returns a source of the objects of from whose field has a hash in the set. It panics if from is nil, if the field
// is unknown, or if the set is empty.
func New[T api.Object](from api.ListerWatcher[T], field hashrange.Field, hashes hashrange.Set, o Options) *Source[T] {
	switch {
	case from == nil:
		panic("shardedsource: the source is nil")
	case field != hashrange.UID && field != hashrange.Namespace:
		panic(fmt.Sprintf("shardedsource: the field is %q; it must be hashrange.UID or hashrange.Namespace", field))
	case hashes.Empty():
		panic("shardedsource: the set is empty; a shard without hashes needs no source")
	}
	return newSource(from, newDecision(field, hashes, newReport(o.Logger, from.Collection().Resource)))
}

// Collection returns the collection of the objects, with their shardSelector.
func (s *Source[T]) Collection() api.Collection {
	c := s.from.Collection()
	switch {
	case s.whole:
	case c.Shard == "":
		c.Shard = s.text
	default:
		c.Shard += " and " + s.text // no server understands it
	}
	return c
}

// Unwrap returns the source of all objects.
func (s *Source[T]) Unwrap() any { return s.from }

// Selects reports whether an object belongs to the shard. Package cachedclient uses it, so that it does not wait for
// the cache to show an object of another shard.
func (s *Source[T]) Selects(object T) bool {
	return s.selects(object.GetNamespace(), object.GetUID()) && (s.outer == nil || s.outer.Selects(object))
}

// Shard returns who cuts, and a counter. It is zero if the ranges have all hashes. Informers show it in their Status.
func (s *Source[T]) Shard() informer.ShardStatus { return s.status() }

// Metadata returns a source of the metadata of the same objects, for consistency checks of an informer. It is nil if
// the source of all objects has no metadata.
func (s *Source[T]) Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata] {
	from := api.MetadataOf(s.from)
	if from == nil {
		return nil
	}
	return newSource(from, newDecision(s.field, s.hashes, newReport(nil, from.Collection().Resource)))
}

// Packed returns a source of the same objects as bytes, or nil if the source cannot keep bytes. Package packed uses it.
func (s *Source[T]) Packed(with func(codec.Options) *codec.Codec[*codec.Packed]) api.ListerWatcher[*codec.Packed] {
	if all, ok := s.from.(codec.PackedSource); ok {
		if from := all.Packed(with); from != nil {
			return newSource(from, s.decision)
		}
	}
	return nil
}

// List sends one request and passes each object of the shard to each. Before the first page of a list, it asks the
// server whether it obeys the shardSelector: a request for one object, or two.
func (s *Source[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	if s.whole {
		return s.from.List(ctx, o, each)
	}
	if o.Continue == "" && (o.Limit != 1 || !s.asked.Load()) { // a reflector lists one object to get a version
		if err := s.decide(ctx, o); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	r := s.request(&o)
	meta, err := s.from.List(ctx, o, func(object T) error {
		if keep, err := r.checked(object); !keep {
			return err
		}
		return each(object)
	})
	if err == nil && r.trusted {
		err = s.verify(meta.ShardInfo, s.hashes)
	}
	if err != nil {
		_ = r.failed(err)
		return metav1.ListMeta{}, err
	}
	return meta, nil
}

// Watch watches the shard. Before a WatchList, it asks the server as List does. If the server does not cut, Watch asks
// it again when it resumes, at most once in ten minutes. A failure of that request does not end the watch.
func (s *Source[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	if s.whole {
		return s.from.Watch(ctx, o)
	}
	return func(yield func(api.Event[T], error) bool) {
		needed := o.SendInitialEvents != nil && *o.SendInitialEvents || !s.asked.Load()
		if needed || s.due() {
			if err := s.decide(ctx, o); err != nil && needed {
				yield(api.Event[T]{}, err)
				return
			}
		}
		o := o
		r := s.request(&o)
		for event, err := range s.from.Watch(ctx, o) {
			keep := true
			switch event.Type {
			case watch.Added, watch.Modified, watch.Deleted:
				if err == nil {
					keep, err = r.checked(event.Object)
				}
			}
			switch {
			case err != nil:
				yield(api.Event[T]{}, r.failed(err))
				return
			case keep && !yield(event, nil):
				return
			}
		}
	}
}

// decide finds out whether the server obeys the shardSelector. It lists one object of a range that no object is in. If
// the server returns one, it does not obey. If it returns none and says nothing about it, it obeys if there are
// objects.
func (s *Source[T]) decide(ctx context.Context, o api.Options[T]) error {
	s.asked.Store(true)
	if !s.ask() {
		return nil
	}
	items, meta, err := s.probe(ctx, o, nothing.Selector(s.field))
	said := meta.ShardInfo != nil
	if err == nil && items == 0 && !said {
		var all int
		if all, _, err = s.probe(ctx, o, ""); err == nil && all == 0 {
			return nil // the decision stays
		}
	}
	switch {
	case apierrors.IsBadRequest(err):
		s.distrust(fmt.Errorf("%w: %w", errRefused, err))
		return nil
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		s.distrust(fmt.Errorf("%w: %w", errUnlisted, err))
		return nil
	case err != nil:
		return err
	case !said && items > 0:
		s.set(Client, errIgnored, false)
		return nil
	case items > 0:
		err = fmt.Errorf("%w: a list has objects of other shards", ErrGarbled)
	case said:
		err = s.verify(meta.ShardInfo, nothing)
	}
	if err != nil {
		s.distrust(err)
		return nil
	}
	s.set(Server, nil, said)
	return nil
}

// probe lists one object and counts it.
func (s *Source[T]) probe(ctx context.Context, o api.Options[T], selector string) (items int, meta metav1.ListMeta, err error) {
	probe := api.Options[T]{
		Keep:          func(_, _ []byte) bool { items++; return false },
		OnUndecodable: func(*api.UndecodableError) error { items++; return nil },
	}
	probe.LabelSelector, probe.FieldSelector, probe.Limit, probe.ShardSelector = o.LabelSelector, o.FieldSelector, 1, selector
	meta, err = s.from.List(ctx, probe, func(T) error { items++; return nil })
	return items, meta, err
}
