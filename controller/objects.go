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
// no object, it calls r.Deleted if r is a Deleter, and does nothing otherwise. KeyedObjects is for keys of other types.
// It corresponds to AsReconciler of controller-runtime.
func Objects[T any](from Getter[T], r ObjectReconciler[T]) Reconciler[api.Key] {
	if from == nil {
		return KeyedObjects[api.Key](nil, r)
	}
	return KeyedObjects(from.Get, r)
}

// KeyedObjects does the same as Objects for keys of any type. get finds the object of a key, for instance in the cache
// of its cluster. For a key without an object, the reconciler calls the method Deleted(context.Context, K) (Result,
// error) of r, if it exists.
func KeyedObjects[K comparable, T any](get func(K) (T, bool), r ObjectReconciler[T]) Reconciler[K] {
	if get == nil || r == nil {
		panic("controller: Objects needs a cache and a reconciler")
	}
	return &objects[K, T]{get: get, r: r}
}

type objects[K comparable, T any] struct {
	get func(K) (T, bool)
	r   ObjectReconciler[T]
}

// Reconcile looks up the object and calls the ObjectReconciler.
func (o *objects[K, T]) Reconcile(ctx context.Context, key K) (Result, error) {
	if object, found := o.get(key); found {
		return o.r.Reconcile(ctx, api.Clone(object))
	}
	if d, ok := o.r.(deleter[K]); ok {
		return d.Deleted(ctx, key)
	}
	return Result{}, nil
}

// deleter is a Deleter for keys of any type.
type deleter[K comparable] interface {
	Deleted(ctx context.Context, key K) (Result, error)
}
