package controller

import (
	"context"

	"github.com/leatproject/leat/api"
)

// ObjectReconciler is a Reconciler that gets the object instead of the key: see Objects. It corresponds to
// ObjectReconciler of controller-runtime.
type ObjectReconciler[T any] interface {
	// Reconcile does the same as Reconciler.Reconcile. The object comes from the cache.
	Reconcile(ctx context.Context, object T) (Result, error)
}

// ObjectFunc is a function that implements ObjectReconciler.
type ObjectFunc[T any] func(ctx context.Context, object T) (Result, error)

// Reconcile calls f.
func (f ObjectFunc[T]) Reconcile(ctx context.Context, object T) (Result, error) {
	return f(ctx, object)
}

// Deleter is an ObjectReconciler that also handles keys without an object.
type Deleter interface {
	// Deleted is called instead of Reconcile when the cache has no object with the key. It is called after the object
	// was deleted, and again whenever the key comes, even if the object never existed. It is not called if an object
	// with the same name was created again before a worker took the key; compare the UID to notice this.
	Deleted(ctx context.Context, key api.Key) (Result, error)
}

// Getter finds objects by key. A cache.Reader is a Getter.
type Getter[T any] interface {
	Get(key api.Key) (T, bool)
}

// Objects returns a Reconciler that gives r a deep copy of the object (see api.Clone), which r may change. If there is
// no object, it calls r.Deleted if r is a Deleter, and does nothing otherwise. It corresponds to AsReconciler of
// controller-runtime.
func Objects[T any](from Getter[T], r ObjectReconciler[T]) Reconciler[api.Key] {
	return newObjects(from, r, api.Clone[T])
}

// SharedObjects does the same as Objects without the copy: r must not change the object.
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

// Reconcile looks up the object and calls the ObjectReconciler.
func (o *objects[T]) Reconcile(ctx context.Context, key api.Key) (Result, error) {
	if object, found := o.from.Get(key); found {
		return o.r.Reconcile(ctx, o.copy(object))
	}
	if d, ok := o.r.(Deleter); ok {
		return d.Deleted(ctx, key)
	}
	return Result{}, nil
}
