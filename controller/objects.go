package controller

import (
	"context"

	"github.com/leatproject/leat/api"
)

// ObjectReconciler is a Reconciler that is given the object: see Objects.
// It corresponds to ObjectReconciler of controller-runtime.
type ObjectReconciler[T any] interface {
	// Reconcile is Reconciler.Reconcile, with the object as the cache has it.
	Reconcile(ctx context.Context, object T) (Result, error)
}

// ObjectFunc is an ObjectReconciler that is a function.
type ObjectFunc[T any] func(ctx context.Context, object T) (Result, error)

// Reconcile calls f.
func (f ObjectFunc[T]) Reconcile(ctx context.Context, object T) (Result, error) {
	return f(ctx, object)
}

// Deleter is an ObjectReconciler that has something to do where there is no object.
type Deleter interface {
	// Deleted is called in the place of Reconcile when the cache has no object with the key: when it is gone, and again
	// whenever the key comes, perhaps without there ever having been one. It is not called for an object that is gone
	// and was made anew before a worker came to it, which the UID of the new one tells.
	Deleted(ctx context.Context, key api.Key) (Result, error)
}

// Getter is what Objects looks objects up in: a cache.Reader is one.
type Getter[T any] interface {
	Get(key api.Key) (T, bool)
}

// Objects returns a Reconciler that gives r a deep copy of the object (see api.Clone), which r may change. If there is
// none it calls r's Deleted if r is a Deleter, and does nothing otherwise.
// It corresponds to AsReconciler of controller-runtime.
func Objects[T any](from Getter[T], r ObjectReconciler[T]) Reconciler[api.Key] {
	return newObjects(from, r, api.Clone[T])
}

// SharedObjects is Objects without the copy: r must not change what it is given.
func SharedObjects[T any](from Getter[T], r ObjectReconciler[T]) Reconciler[api.Key] {
	return newObjects(from, r, func(object T) T { return object })
}

type objects[T any] struct {
	from Getter[T]
	r    ObjectReconciler[T]
	copy func(T) T
}

func newObjects[T any](from Getter[T], r ObjectReconciler[T], copy func(T) T) Reconciler[api.Key] {
	if from == nil || r == nil {
		panic("controller: Objects needs a cache and a reconciler")
	}
	return &objects[T]{from: from, r: r, copy: copy}
}

// Reconcile looks the object up and hands it on.
func (o *objects[T]) Reconcile(ctx context.Context, key api.Key) (Result, error) {
	if object, found := o.from.Get(key); found {
		return o.r.Reconcile(ctx, o.copy(object))
	}
	if d, ok := o.r.(Deleter); ok {
		return d.Deleted(ctx, key)
	}
	return Result{}, nil
}
