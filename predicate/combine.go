package predicate

import "github.com/leatproject/leat/informer"

// And returns a predicate that passes if all given predicates pass; without predicates it always passes. It calls them
// in turn and stops at the first that fails. For a source, prefer its method When, which lets Go infer more types. It
// corresponds to And of controller-runtime.
func And[T any](predicates ...Predicate[T]) Predicate[T] {
	return func(n informer.Notification[T]) bool {
		for _, p := range predicates {
			if !p(n) {
				return false
			}
		}
		return true
	}
}

// Or returns a predicate that passes if any given predicate passes; without predicates it never passes. It calls them
// in turn and stops at the first that passes. For a source, prefer its method WhenAny. It corresponds to Or of
// controller-runtime.
func Or[T any](predicates ...Predicate[T]) Predicate[T] {
	return func(n informer.Notification[T]) bool {
		for _, p := range predicates {
			if p(n) {
				return true
			}
		}
		return false
	}
}

// Not returns a predicate that passes if p does not. For a source, prefer its method Unless. It corresponds to Not of
// controller-runtime.
func Not[T any](p Predicate[T]) Predicate[T] {
	return func(n informer.Notification[T]) bool { return !p(n) }
}
