package predicate

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
)

// Predicate says whether a notification is worth a reconcile. It must answer from the notification alone: it is called
// on the informer's delivering goroutine, with objects that are the cache's own and must not be changed.
// It corresponds to TypedPredicate of controller-runtime, with one function and the kind of event in its argument where
// that has four methods.
type Predicate[T any] = func(informer.Notification[T]) bool

// Created passes additions, those of the initial list included.
func Created[T any](n informer.Notification[T]) bool { return n.Type == informer.Add }

// Updated passes updates, resyncs included.
func Updated[T any](n informer.Notification[T]) bool { return n.Type == informer.Update }

// Deleted passes deletions.
func Deleted[T any](n informer.Notification[T]) bool { return n.Type == informer.Delete }

// Initial passes the additions of a handler's initial list: objects that were there before it.
func Initial[T any](n informer.Notification[T]) bool { return n.Type == informer.Add && n.InitialList }

// Resynced passes the updates by which an informer tells of an object again although nothing changed.
func Resynced[T any](n informer.Notification[T]) bool { return n.Type == informer.Update && n.Resync }

// GenerationChanged passes updates that change metadata.generation, and everything that is no update.
//
// A server raises the generation when the desired state changes: for most built-in types with the spec (for deployments
// with annotations too), for a custom resource with a status subresource with anything but metadata and status, and for
// one without it with anything but metadata. Types without a generation, such as ConfigMaps, always have 0: none of
// their updates pass.
// It corresponds to GenerationChangedPredicate of controller-runtime.
func GenerationChanged[T interface{ GetGeneration() int64 }](n informer.Notification[T]) bool {
	return n.Type != informer.Update || n.Old.GetGeneration() != n.Object.GetGeneration()
}

// ResourceVersionChanged passes updates that change the version, which are all but resyncs, and everything that is no
// update.
// It corresponds to ResourceVersionChangedPredicate of controller-runtime.
func ResourceVersionChanged[T api.Object](n informer.Notification[T]) bool {
	return n.Type != informer.Update || n.Old.GetResourceVersion() != n.Object.GetResourceVersion()
}

// LabelsChanged passes updates that change labels, and everything that is no update. No labels and empty ones are the
// same.
// It corresponds to LabelChangedPredicate of controller-runtime.
func LabelsChanged[T interface{ GetLabels() map[string]string }](n informer.Notification[T]) bool {
	return n.Type != informer.Update || !maps.Equal(n.Old.GetLabels(), n.Object.GetLabels())
}

// AnnotationsChanged passes updates that change annotations, and everything that is no update. No annotations and empty
// ones are the same.
// It corresponds to AnnotationChangedPredicate of controller-runtime.
func AnnotationsChanged[T interface{ GetAnnotations() map[string]string }](n informer.Notification[T]) bool {
	return n.Type != informer.Update || !maps.Equal(n.Old.GetAnnotations(), n.Object.GetAnnotations())
}

// Changed returns a predicate that passes updates for which what f returns changes, and everything that is no update.
// Nothing in controller-runtime corresponds to it.
func Changed[T any, V comparable](f func(T) V) Predicate[T] {
	return func(n informer.Notification[T]) bool {
		return n.Type != informer.Update || f(n.Old) != f(n.Object)
	}
}

// Object returns a predicate that asks f about the new state, and about the last one of what was deleted. An update by
// which f ceases to hold does not pass: see Either.
// It corresponds to NewPredicateFuncs of controller-runtime.
func Object[T any](f func(T) bool) Predicate[T] {
	return func(n informer.Notification[T]) bool { return f(n.Object) }
}

// Either returns a predicate that asks f about the new state and, in an update, about the old one: it passes if f holds
// for one of them, so that a reconcile is told when an object leaves what f describes.
// Nothing in controller-runtime corresponds to it.
func Either[T any](f func(T) bool) Predicate[T] {
	return func(n informer.Notification[T]) bool {
		return f(n.Object) || n.Type == informer.Update && f(n.Old)
	}
}

// OfType returns a predicate on objects of any type that asks p about those of type T, which may be an interface, and
// passes all others. It is for the predicates of a whole controller: see controller.Options.
// Nothing in controller-runtime corresponds to it.
func OfType[T any](p Predicate[T]) Predicate[api.Object] {
	return func(n informer.Notification[api.Object]) bool {
		object, ok := n.Object.(T)
		if !ok {
			return true
		}
		old, _ := n.Old.(T) // nil in all but an update
		return p(informer.Notification[T]{
			Type: n.Type, Object: object, Old: old,
			FinalStateUnknown: n.FinalStateUnknown, InitialList: n.InitialList, Resync: n.Resync, At: n.At,
		})
	}
}

// Funcs asks one function for each kind of event; a nil one passes everything. Its method Pass is the predicate:
//
//	controller.For(pods).When(predicate.Funcs[*Pod]{Update: hasMoved}.Pass)
//
// It corresponds to TypedFuncs of controller-runtime.
type Funcs[T any] struct {
	// Add is asked about new objects, those of the initial list included.
	Add func(T) bool
	// Update is asked about both states, which are the same in a resync.
	Update func(before, after T) bool
	// Delete is asked about the last known state.
	Delete func(T) bool
}

// Pass is a Predicate.
func (f Funcs[T]) Pass(n informer.Notification[T]) bool {
	switch {
	case n.Type == informer.Add && f.Add != nil:
		return f.Add(n.Object)
	case n.Type == informer.Update && f.Update != nil:
		return f.Update(n.Old, n.Object)
	case n.Type == informer.Delete && f.Delete != nil:
		return f.Delete(n.Object)
	}
	return true
}

// LabelSelector returns a predicate that passes objects whose labels match, in their new state. Its type has to be
// named: predicate.LabelSelector[*Pod](s). A selector of an informer saves memory and traffic, which a predicate cannot.
// It corresponds to LabelSelectorPredicate of controller-runtime.
func LabelSelector[T interface{ GetLabels() map[string]string }](s labels.Selector) Predicate[T] {
	return Object(selected[T](s))
}

// LabelSelectorEither is LabelSelector for objects that match in their new or their old state.
// Nothing in controller-runtime corresponds to it.
func LabelSelectorEither[T interface{ GetLabels() map[string]string }](s labels.Selector) Predicate[T] {
	return Either(selected[T](s))
}

func selected[T interface{ GetLabels() map[string]string }](s labels.Selector) func(T) bool {
	if s == nil {
		panic("predicate: a label selector is needed; labels.Everything() selects all")
	}
	return func(object T) bool { return s.Matches(labels.Set(object.GetLabels())) }
}
