package predicate

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/leatproject/leat/api"
)

// Predicate reports whether a change needs a reconcile. It must decide from the change alone. It runs on the goroutine
// of the informer's handler; the objects are shared with the cache and must not be changed. It corresponds to
// TypedPredicate of controller-runtime, which has four methods instead of one function.
type Predicate[T any] = func(api.Change[T]) bool

// Created passes additions, including those of the initial list.
func Created[T any](n api.Change[T]) bool { return n.Type == api.Added }

// Updated passes updates, including resyncs.
func Updated[T any](n api.Change[T]) bool { return n.Type == api.Updated }

// Deleted passes deletes.
func Deleted[T any](n api.Change[T]) bool { return n.Type == api.Deleted }

// Initial passes the additions of a handler's initial list: objects that existed before the handler.
func Initial[T any](n api.Change[T]) bool { return n.Type == api.Added && n.InitialList }

// Resynced passes the updates of a resync, in which nothing changed.
func Resynced[T any](n api.Change[T]) bool { return n.Type == api.Updated && n.Resync }

// GenerationChanged passes updates that change metadata.generation, and all additions and deletes.
//
// A server raises the generation when the desired state changes. For most built-in types, that is a change of the spec,
// and for deployments also of annotations. For a custom resource with a status subresource, it is any change outside
// metadata and status; without one, any change outside metadata. Types without a generation, such as ConfigMaps, always
// have 0, so none of their updates passes. It corresponds to GenerationChangedPredicate of controller-runtime.
func GenerationChanged[T interface{ GetGeneration() int64 }](n api.Change[T]) bool {
	return n.Type != api.Updated || n.Old.GetGeneration() != n.Object.GetGeneration()
}

// ResourceVersionChanged passes updates that change the resource version, that is, all updates except resyncs, and all
// additions and deletes. It corresponds to ResourceVersionChangedPredicate of controller-runtime.
func ResourceVersionChanged[T api.Object](n api.Change[T]) bool {
	return n.Type != api.Updated || n.Old.GetResourceVersion() != n.Object.GetResourceVersion()
}

// LabelsChanged passes updates that change labels, and all additions and deletes. Nil and empty labels are equal. It
// corresponds to LabelChangedPredicate of controller-runtime.
func LabelsChanged[T interface{ GetLabels() map[string]string }](n api.Change[T]) bool {
	return n.Type != api.Updated || !maps.Equal(n.Old.GetLabels(), n.Object.GetLabels())
}

// AnnotationsChanged passes updates that change annotations, and all additions and deletes. Nil and empty annotations
// are equal. It corresponds to AnnotationChangedPredicate of controller-runtime.
func AnnotationsChanged[T interface{ GetAnnotations() map[string]string }](n api.Change[T]) bool {
	return n.Type != api.Updated || !maps.Equal(n.Old.GetAnnotations(), n.Object.GetAnnotations())
}

// Changed returns a predicate that passes updates in which the result of f changes, and all additions and deletes.
// controller-runtime has nothing like it.
func Changed[T any, V comparable](f func(T) V) Predicate[T] {
	return func(n api.Change[T]) bool {
		return n.Type != api.Updated || f(n.Old) != f(n.Object)
	}
}

// Object returns a predicate that calls f with the new state, or with the last state of a deleted object. An update
// after which f no longer holds does not pass: see Either. It corresponds to NewPredicateFuncs of controller-runtime.
func Object[T any](f func(T) bool) Predicate[T] {
	return func(n api.Change[T]) bool { return f(n.Object) }
}

// Either returns a predicate that passes if f holds for the new state or, in an update, for the old state. So the
// reconciler also learns of an object that leaves the selection. controller-runtime has nothing like it.
func Either[T any](f func(T) bool) Predicate[T] {
	return func(n api.Change[T]) bool {
		return f(n.Object) || n.Type == api.Updated && f(n.Old)
	}
}

// Funcs has one function for each kind of event; a nil function passes everything. Its method Pass is the predicate:
//
//	controller.For(pods).When(predicate.Funcs[*Pod]{Update: hasMoved}.Pass)
//
// It corresponds to TypedFuncs of controller-runtime.
type Funcs[T any] struct {
	// Add gets new objects, including those of the initial list.
	Add func(T) bool
	// Update gets both states, which are the same in a resync.
	Update func(before, after T) bool
	// Delete gets the last known state.
	Delete func(T) bool
}

// Pass is a Predicate.
func (f Funcs[T]) Pass(n api.Change[T]) bool {
	switch {
	case n.Type == api.Added && f.Add != nil:
		return f.Add(n.Object)
	case n.Type == api.Updated && f.Update != nil:
		return f.Update(n.Old, n.Object)
	case n.Type == api.Deleted && f.Delete != nil:
		return f.Delete(n.Object)
	}
	return true
}

// LabelSelector returns a predicate that passes objects whose labels match in their new state. The call must name the
// type: predicate.LabelSelector[*Pod](s). A selector of an informer also saves memory and traffic. It corresponds to
// LabelSelectorPredicate of controller-runtime.
func LabelSelector[T interface{ GetLabels() map[string]string }](s labels.Selector) Predicate[T] {
	if s == nil {
		panic("predicate: the label selector is nil; labels.Everything() selects all objects")
	}
	return Object(func(object T) bool { return s.Matches(labels.Set(object.GetLabels())) })
}
