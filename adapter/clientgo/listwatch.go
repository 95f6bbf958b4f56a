package clientgo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// NewSharedIndexInformer has the signature of client-go's function of this name. It is for list/watchers of client-go:
// those of generated code, of fake clientsets, and hand-written ones. The source decodes; use New for leat's decoders.
func NewSharedIndexInformer(
	lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, example, cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers})
}

// NewSharedInformer is NewSharedIndexInformer without indexers.
func NewSharedInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration) cache.SharedInformer {
	return NewSharedIndexInformer(lw, example, resync, nil)
}

// NewSharedIndexInformerWithOptions has the signature of client-go's function of this name. It panics if the options
// ask for metrics of client-go (Identifier or InformerMetricsProvider), because leat has its own.
func NewSharedIndexInformerWithOptions(
	lw cache.ListerWatcher, example runtime.Object, o cache.SharedIndexInformerOptions,
) cache.SharedIndexInformer {
	if o.Identifier.Reserved() || o.InformerMetricsProvider != nil {
		panic("clientgo: SharedIndexInformerOptions.Identifier and InformerMetricsProvider ask for client-go's metrics, " +
			"which leat does not have; register the informer with leat's package metrics instead")
	}
	source := &listWatch{lw: cache.ToListerWatcherWithContext(lw), example: example, description: o.ObjectDescription}
	return New[Object](source, Options[Object]{
		Options: informer.Options[Object]{
			Handling: informer.Handling{ResyncPeriod: o.ResyncPeriod}, Memory: reflector.Memory{KeepManagedFields: true},
			Tuning: tuningOf(lw),
		},
		Indexers: o.Indexers,
	})
}

// ListerWatcher returns a list/watcher of client-go as one of leat. Objects of another type than example are reported
// as undecodable; a nil example allows all types.
func ListerWatcher(lw cache.ListerWatcher, example runtime.Object) api.ListerWatcher[Object] {
	return &listWatch{lw: cache.ToListerWatcherWithContext(lw), example: example}
}

// listWatch is a list/watcher of client-go. It does not know its resource, so objects may have a namespace or not.
type listWatch struct {
	lw          cache.ListerWatcherWithContext
	example     runtime.Object
	description string // replaces the type of example in texts
}

// Collection returns the zero Collection.
func (l *listWatch) Collection() api.Collection { return api.Collection{} }

// String returns the description of the objects, or their type.
func (l *listWatch) String() string {
	if l.description != "" {
		return l.description
	}
	if l.example == nil {
		return "any type"
	}
	if gvk := l.example.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		return gvk.String()
	}
	return fmt.Sprintf("%T", l.example)
}

// List lists the source. The items share no memory with the list, so that a cached object does not keep the others.
func (l *listWatch) List(ctx context.Context, o api.Options[Object], each func(Object) error) (metav1.ListMeta, error) {
	list, err := await(ctx, func() (runtime.Object, error) { return l.lw.ListWithContext(ctx, o.ListOptions) }, nil)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return metav1.ListMeta{}, fmt.Errorf("clientgo: the answer of the list is a %T: %w", list, err)
	}
	err = meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		object, err := l.object(item, "", o.OnUndecodable)
		if object == nil || err != nil {
			return err
		}
		return each(object)
	})
	return metav1.ListMeta{
		ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue(), RemainingItemCount: m.GetRemainingItemCount(),
	}, err
}

// object returns an item as an Object. An object without metadata is an
// error, and an object of another type than the example is reported.
func (l *listWatch) object(item runtime.Object, kind watch.EventType, report func(*api.UndecodableError) error) (Object, error) {
	object, ok := item.(Object)
	if !ok {
		return nil, fmt.Errorf("clientgo: the source sent a %T, which has no metadata", item)
	}
	if err := l.check(object); err != nil {
		bad := &api.UndecodableError{
			Key: api.KeyOf(object), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Type: kind, Err: err,
		}
		if report == nil {
			return nil, bad
		}
		return nil, report(bad)
	}
	return object, nil
}

// check compares the type of an object with that of the example, and the kind if the example has one.
func (l *listWatch) check(object Object) error {
	if l.example == nil {
		return nil
	}
	if reflect.TypeOf(object) != reflect.TypeOf(l.example) {
		return fmt.Errorf("clientgo: the object is a %T; the informer is for %s", object, l)
	}
	want, got := l.example.GetObjectKind().GroupVersionKind(), object.GetObjectKind().GroupVersionKind()
	if want.Kind != "" && got.Kind != "" && want != got {
		return fmt.Errorf("clientgo: the object is a %s; the informer is for %s", got, l)
	}
	return nil
}

// Watch watches the source.
func (l *listWatch) Watch(ctx context.Context, o api.Options[Object]) iter.Seq2[api.Event[Object], error] {
	return func(yield func(api.Event[Object], error) bool) {
		open := func() (watch.Interface, error) { return l.lw.WatchWithContext(ctx, o.ListOptions) }
		w, err := await(ctx, open, func(w watch.Interface) {
			if w != nil {
				w.Stop()
			}
		})
		if err == nil && w == nil {
			err = errors.New("clientgo: the source returned no watch")
		}
		if err != nil {
			yield(api.Event[Object]{}, err)
			return
		}
		defer w.Stop()
		if o.OnOpen != nil {
			o.OnOpen()
		}
		for {
			select {
			case <-ctx.Done():
				yield(api.Event[Object]{}, ctx.Err())
				return
			case e, open := <-w.ResultChan():
				if !open || !l.pass(e, o, yield) {
					return
				}
			}
		}
	}
}

// pass yields an event. It reports whether the loop should go on.
func (l *listWatch) pass(e watch.Event, o api.Options[Object], yield func(api.Event[Object], error) bool) bool {
	event := api.Event[Object]{Type: e.Type}
	switch e.Type {
	case watch.Error:
		yield(event, apierrors.FromObject(e.Object))
		return false
	case watch.Bookmark:
		m, err := meta.Accessor(e.Object)
		if err != nil {
			yield(event, fmt.Errorf("clientgo: a bookmark without metadata: %w", err))
			return false
		}
		event.ResourceVersion = m.GetResourceVersion()
		event.InitialEventsEnd = m.GetAnnotations()[api.InitialEventsEndAnnotation] == "true"
		return yield(event, nil)
	case watch.Added, watch.Modified, watch.Deleted:
		object, err := l.object(e.Object, e.Type, o.OnUndecodable)
		if err != nil {
			yield(event, err)
			return false
		}
		if object == nil {
			return true
		}
		event.Object, event.ResourceVersion = object, object.GetResourceVersion()
	}
	return yield(event, nil)
}

// await calls f and returns its result, or the error of ctx if that ends first. It does not call f if ctx has ended
// before. If ctx ends during the call, the goroutine of f remains until f returns, because list/watchers that know no
// context cannot be interrupted, and drop gets what it returns.
func await[R any](ctx context.Context, f func() (R, error), drop func(R)) (R, error) {
	type result struct {
		r   R
		err error
	}
	var none R
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	results := make(chan result)
	go func() {
		r, err := f()
		select {
		case results <- result{r, err}:
		case <-ctx.Done():
			if drop != nil && err == nil {
				drop(r)
			}
		}
	}()
	select {
	case r := <-results:
		return r.r, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
