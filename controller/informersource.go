package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// Informer is the part of an informer that a source needs. *informer.Informer[T] and *factory.Share[T] implement it.
// Other packages may implement it too.
type Informer[T api.Object] interface {
	// Resource returns the kind of the objects. It names the source, and Owns follows references to this kind.
	Resource() api.Resource
	// Cache returns the objects. Owns finds the current UID of an owner in it.
	Cache() cache.Reader[T]
	// Synced returns a channel that is closed when the cache holds the initial list.
	Synced() <-chan struct{}
	// Stopped returns a channel that is closed when the cache does not change any more.
	Stopped() <-chan struct{}
	// Status tells why the informer is not synced.
	Status() informer.Status
	// Subscribe registers a function that receives the changes.
	Subscribe(f func(api.Change[T]), o informer.HandlerOptions) (informer.Registration, error)
}

// InformerSource is a Source that turns the changes of an informer into keys. For, Owns and Map make one. Its
// methods return a changed copy. It corresponds to Kind, with a handler and predicates, of controller-runtime.
type InformerSource[T api.Object, K comparable] struct {
	informer Informer[T]
	owners   readiness // the owners' informer in Owns, otherwise nil
	name     string
	resource api.Resource // of the objects that the keys name; zero if unknown
	// keys appends the keys for the new state in a change. left appends the keys for the old state in an update, if
	// they may differ; it may be nil.
	keys, left func(dst []K, n api.Change[T]) []K
	filter     filter[T]
	// identityOnly says that keys and left read only the identity of objects, nonBlocking that they return at once.
	identityOnly, nonBlocking bool
}

// readiness is the part of an informer that does not depend on its type.
type readiness interface {
	Synced() <-chan struct{}
	Stopped() <-chan struct{}
	Status() informer.Status
}

// For returns a source that adds the key of every object that is added, updated or deleted. It corresponds to
// EnqueueRequestForObject of controller-runtime.
func For[T api.Object](objects Informer[T]) InformerSource[T, api.Key] {
	mustHave(objects, "For")
	return InformerSource[T, api.Key]{
		informer: objects,
		name:     objects.Resource().String(),
		resource: objects.Resource(),
		keys:     objectKey[T],

		identityOnly: true, nonBlocking: true,
	}
}

func objectKey[T api.Object](dst []api.Key, n api.Change[T]) []api.Key {
	return append(dst, api.KeyOf(n.Object))
}

// Map returns a source that adds the keys that f returns for an object that is added, updated or deleted. In an update,
// the source calls f for the new and for the old state, so that keys that only the old state names are added too. f
// runs on the goroutine of the informer's handler; while it blocks, later changes of this source wait. It must not
// change the object. A panic of f is counted and logged, and this state of the object adds no keys. It corresponds to
// EnqueueRequestsFromMapFunc of controller-runtime.
func Map[T api.Object, K comparable](objects Informer[T], f func(T) []K) InformerSource[T, K] {
	mustHave(objects, "Map")
	if f == nil {
		panic("controller: Map needs a function")
	}
	return InformerSource[T, K]{
		informer: objects,
		name:     objects.Resource().String() + " (mapped)",
		keys:     func(dst []K, n api.Change[T]) []K { return append(dst, f(n.Object)...) },
		left:     func(dst []K, n api.Change[T]) []K { return append(dst, f(n.Old)...) },
	}
}

// Keyed returns the source with keys of another type: those that convert returns for the keys of objects. A controller
// of several clusters needs such keys. It fits For and Owns, and keeps their predicates:
//
//	controller.Keyed(controller.Owns(jobs, pods), func(k api.Key) ClusterKey { return ClusterKey{"eu", k} })
func Keyed[T api.Object, K comparable](s InformerSource[T, api.Key], convert func(api.Key) K) InformerSource[T, K] {
	if convert == nil {
		panic("controller: Keyed needs a function")
	}
	return InformerSource[T, K]{
		informer: s.informer, owners: s.owners, name: s.name, resource: s.resource,
		keys: converting(s.keys, convert), left: converting(s.left, convert),
		filter: s.filter, identityOnly: s.identityOnly,
	}
}

// converting returns f with other keys; nil stays nil.
func converting[T api.Object, K comparable](f func([]api.Key, api.Change[T]) []api.Key, convert func(api.Key) K) func([]K, api.Change[T]) []K {
	if f == nil {
		return nil
	}
	return func(dst []K, n api.Change[T]) []K {
		for _, key := range f(nil, n) {
			dst = append(dst, convert(key))
		}
		return dst
	}
}

func mustHave[T api.Object](i Informer[T], what string) {
	if i == nil {
		panic("controller: " + what + " needs an informer")
	}
}

// When adds predicates that must all pass a change. A predicate that panics counts as passing, so that no event is
// lost; the panic is counted and logged. Predicates save reconciles; selectors of the informer save memory and traffic.
func (s InformerSource[T, K]) When(predicates ...func(api.Change[T]) bool) InformerSource[T, K] {
	s.filter = s.filter.when(predicates)
	return s
}

// Unless adds predicates; a change must pass none of them. A predicate that panics counts as not passing.
func (s InformerSource[T, K]) Unless(predicates ...func(api.Change[T]) bool) InformerSource[T, K] {
	s.filter = s.filter.unless(predicates)
	return s
}

// WhenAny adds predicates; a change must pass at least one of them. WhenAny without predicates drops every change.
func (s InformerSource[T, K]) WhenAny(predicates ...func(api.Change[T]) bool) InformerSource[T, K] {
	s.filter = s.filter.whenAny(predicates)
	return s
}

// Named replaces the name of the source, which is the name of its resource, in errors, logs and causes.
func (s InformerSource[T, K]) Named(name string) InformerSource[T, K] {
	s.name = name
	return s
}

// keysOf returns the resource of the objects that the keys name: the resource of the objects themselves in For, and
// that of the owners in Owns. It is zero in Map, where only the function knows.
func (s InformerSource[T, K]) keysOf() api.Resource { return s.resource }

// String returns the name of the source.
func (s InformerSource[T, K]) String() string { return s.name }

// Run subscribes to the informer until ctx ends; see Source. It returns informer.ErrStopped if the informer, or the
// share of it, ends more than a second earlier.
func (s InformerSource[T, K]) Run(ctx context.Context, sink *Sink[K]) error {
	d := newDelivery(s, sink)
	own := len(s.filter) == 0 // otherwise a predicate may read everything, and may block
	r, err := s.informer.Subscribe(d.handle, informer.HandlerOptions{
		Name:         sink.controller.name + ": " + s.name,
		IdentityOnly: own && s.identityOnly, NonBlocking: own && s.nonBlocking,
	})
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

// await returns nil when the channel is closed or ctx has ended. It returns an error if the channel will never be
// closed.
func (s InformerSource[T, K]) await(ctx context.Context, r informer.Registration, ready <-chan struct{}) error {
	var owners <-chan struct{}
	if s.owners != nil {
		owners = s.owners.Stopped()
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return nil
	case <-r.Done(): // the informer has stopped, or its share was released
	case <-owners:
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(stopGrace):
		return informer.ErrStopped
	}
}

// stopGrace is how much earlier than the controller an informer may stop without an error. One context may end both,
// and one of them notices it first.
const stopGrace = time.Second

// NotSynced returns an error that names the informer that is not synced, with the last error of its list or watch.
func (s InformerSource[T, K]) NotSynced() error {
	for _, i := range []readiness{s.informer, s.owners} {
		if i != nil && !runstate.IsClosed(i.Synced()) {
			return &notSyncedError{i.Status()}
		}
	}
	return errProcessing
}

// errProcessing is the reason of a source whose informer is synced.
var errProcessing = errors.New("the initial list is still being processed")

// notSyncedError is the error of an informer that is not synced.
type notSyncedError struct{ status informer.Status }

func (l *notSyncedError) Error() string { return l.status.String() }

// Unwrap returns the last error of the informer's list or watch.
func (l *notSyncedError) Unwrap() error { return l.status.Reflector.Err }

var (
	_ Informer[api.Object] = (*informer.Informer[api.Object])(nil)
	_ fmt.Stringer         = InformerSource[api.Object, api.Key]{}
)
