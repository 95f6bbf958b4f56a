package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
)

// Informer is what a source needs of an informer. *informer.Informer[T] and *informer.Share[T] are Informers.
type Informer[T api.Object] interface {
	// Resource is the kind of the objects: it names the source, and tells Owns whose references to follow.
	Resource() api.Resource
	// Cache holds the objects; Owns looks up in it which incarnation of an owner lives.
	Cache() cache.Reader[T]
	// Synced is closed when the cache holds the initial list.
	Synced() <-chan struct{}
	// Stopped is closed when the cache does not change any more.
	Stopped() <-chan struct{}
	// Status says why the informer is not synced.
	Status() informer.Status
	// Subscribe registers what takes the notifications.
	Subscribe(f func(informer.Notification[T]), o informer.HandlerOptions) (*informer.Registration, error)
}

// InformerSource is a Source that turns what an informer tells into keys. For, Owns, OwnsAny and Map make one; its
// methods return it with something added, and leave the one they are called on as it is.
// It corresponds to Kind, with a handler and predicates, of controller-runtime.
type InformerSource[T api.Object, K comparable] struct {
	informer Informer[T]
	owners   readiness // the owners' informer in Owns, nil elsewhere
	name     string
	keysOf   api.Resource // of the objects that the keys name; zero if it is not known
	// keys appends the keys that the new state in a notification stands for, left those that only the old state in an
	// update may stand for; left is nil where there are none.
	keys, left func(dst []K, n informer.Notification[T]) []K
	filter     filter[informer.Notification[T]]
	priority   func(informer.Notification[T]) int // nil is LowPriority for what can wait, and 0 for the rest
	regardless bool                               // of Options.When
}

// readiness is what a source asks an informer of any type.
type readiness interface {
	Synced() <-chan struct{}
	Stopped() <-chan struct{}
	Status() informer.Status
}

// For returns a source that adds the key of every object that something happens to.
// It corresponds to EnqueueRequestForObject of controller-runtime.
func For[T api.Object](objects Informer[T]) InformerSource[T, api.Key] {
	mustHave(objects, "For")
	return InformerSource[T, api.Key]{
		informer: objects,
		name:     objects.Resource().String(),
		keysOf:   objects.Resource(),
		keys:     objectKey[T],
	}
}

func objectKey[T api.Object](dst []api.Key, n informer.Notification[T]) []api.Key {
	return append(dst, api.KeyOf(n.Object))
}

// Map returns a source that adds the keys which f finds for an object that something happens to. In an update f is
// asked about the new state and about the old one, so that who is left behind is told, too. f is called on the
// informer's delivering goroutine: what it waits for, later notifications of this source wait for. It must not change
// the object. If it panics, that is counted and logged, and this state of the object adds no keys.
// It corresponds to EnqueueRequestsFromMapFunc of controller-runtime.
func Map[T api.Object, K comparable](objects Informer[T], f func(T) []K) InformerSource[T, K] {
	mustHave(objects, "Map")
	if f == nil {
		panic("controller: Map needs a function")
	}
	return InformerSource[T, K]{
		informer: objects,
		name:     objects.Resource().String() + " (mapped)",
		keys:     func(dst []K, n informer.Notification[T]) []K { return append(dst, f(n.Object)...) },
		left:     func(dst []K, n informer.Notification[T]) []K { return append(dst, f(n.Old)...) },
	}
}

func mustHave[T api.Object](i Informer[T], what string) {
	if i == nil {
		panic("controller: " + what + " needs an informer")
	}
}

// When adds predicates that must all pass a notification. A predicate that panics counts as passing, so that nothing is
// lost; the panic is counted and logged. Predicates save reconciles; memory and traffic are saved by an informer's
// selectors.
func (s InformerSource[T, K]) When(predicates ...func(informer.Notification[T]) bool) InformerSource[T, K] {
	s.filter = s.filter.when(predicates)
	return s
}

// Unless adds predicates none of which may pass a notification. One that panics counts as not passing.
func (s InformerSource[T, K]) Unless(predicates ...func(informer.Notification[T]) bool) InformerSource[T, K] {
	s.filter = s.filter.unless(predicates)
	return s
}

// WhenAny adds predicates one of which must pass a notification. Without any, nothing passes.
func (s InformerSource[T, K]) WhenAny(predicates ...func(informer.Notification[T]) bool) InformerSource[T, K] {
	s.filter = s.filter.whenAny(predicates)
	return s
}

// Prioritized has f say with which priority the keys of a notification are added, in the place of LowPriority for initial
// lists, resyncs and updates of no new version, and 0 for all others. If f panics these hold; the panic is counted and
// logged.
// It corresponds to WithLowPriorityWhenUnchanged and the like of controller-runtime.
func (s InformerSource[T, K]) Prioritized(f func(informer.Notification[T]) int) InformerSource[T, K] {
	if f == nil {
		panic("controller: Prioritized needs a function")
	}
	s.priority = f
	return s
}

// Regardless exempts the source from the predicates of the whole controller: see Options.When.
func (s InformerSource[T, K]) Regardless() InformerSource[T, K] {
	s.regardless = true
	return s
}

// Named gives the source another name than that of its resource: in errors, logs and causes.
func (s InformerSource[T, K]) Named(name string) InformerSource[T, K] {
	s.name = name
	return s
}

// KeysOf is the resource of the objects that the keys name: that of the objects themselves in For, that of the owners in
// Owns. It is zero for Map, where only the function knows.
func (s InformerSource[T, K]) KeysOf() api.Resource { return s.keysOf }

// String returns the name of the source.
func (s InformerSource[T, K]) String() string { return s.name }

// Run subscribes to the informer until ctx ends; see Source. It fails with informer.ErrStopped if the informer, or the
// share of it, ends more than a second before.
func (s InformerSource[T, K]) Run(ctx context.Context, sink *Sink[K]) error {
	d := newDelivery(s, sink)
	r, err := s.informer.Subscribe(d.handle, informer.HandlerOptions{Name: sink.controller.name + ": " + s.name})
	if err != nil {
		return err
	}
	defer func() {
		r.Remove()
		<-r.Done()
	}()
	if err := s.await(ctx, r, r.Synced()); err != nil {
		return err
	}
	if s.owners != nil {
		if err := s.await(ctx, r, s.owners.Synced()); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	sink.Synced()
	return s.await(ctx, r, nil)
}

// await returns nil when something is ready or ctx has ended, and an error when it never will be.
func (s InformerSource[T, K]) await(ctx context.Context, r *informer.Registration, ready <-chan struct{}) error {
	var owners <-chan struct{}
	if s.owners != nil {
		owners = s.owners.Stopped()
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return nil
	case <-r.Done(): // the informer has stopped, or the share of it was released
	case <-owners:
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(stopGrace):
		return informer.ErrStopped
	}
}

// stopGrace is how much earlier than the controller an informer may stop without its being an error: where one context
// ends both, it reaches one of them first.
const stopGrace = time.Second

// NotSynced says which informer is not synced, and what its list or watch failed with last.
func (s InformerSource[T, K]) NotSynced() error {
	for _, i := range []readiness{s.informer, s.owners} {
		if i != nil && !isClosed(i.Synced()) {
			return &laggard{i.Status()}
		}
	}
	return errors.New("its initial list is still being processed")
}

// laggard is an informer that is not synced.
type laggard struct{ status informer.Status }

func (l *laggard) Error() string { return l.status.String() }

// Unwrap returns what its list or watch failed with last.
func (l *laggard) Unwrap() error { return l.status.Reflector.Err }

var _ fmt.Stringer = InformerSource[api.Object, api.Key]{}
