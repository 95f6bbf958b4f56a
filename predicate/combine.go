package predicate

import "github.com/leatproject/leat/informer"

// And returns a predicate that passes what all of the given ones pass; of none, everything. It asks them in turn until
// one answers no. Where a source is being described, its method When does the same and leaves more for Go to infer.
// It corresponds to And of controller-runtime.
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

// Or returns a predicate that passes what any of the given ones passes; of none, nothing. It asks them in turn until
// one answers yes. Where a source is being described, its method WhenAny does the same.
// It corresponds to Or of controller-runtime.
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

// Not returns a predicate that passes what p does not. Where a source is being described, its method Unless does the
// same.
// It corresponds to Not of controller-runtime.
func Not[T any](p Predicate[T]) Predicate[T] {
	return func(n informer.Notification[T]) bool { return !p(n) }
}
