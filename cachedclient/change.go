package cachedclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/codec"
)

// OperationResult says what CreateOrUpdate, CreateOrPatch, Change or ChangeStatus did.
type OperationResult string

const (
	// Unchanged means that the object was already as desired and nothing was sent.
	Unchanged OperationResult = "unchanged"
	// Created means that the object did not exist and was created.
	Created OperationResult = "created"
	// Updated means that the object existed and was changed.
	Updated OperationResult = "updated"
)

// CreateOrUpdate creates or updates an object so that mutate would not change it. It calls mutate with a copy of the
// existing object. If there is no such object, it calls mutate with a copy of the given one; otherwise it uses only the
// name and namespace of the given one. mutate must not change name or namespace, and may be called several times. If
// mutate changes nothing, CreateOrUpdate sends nothing.
//
// It reads from the cache first. If the server answers that the object has changed, exists or does not exist, it reads
// from the server and calls mutate again, up to five times. It returns the resulting object. It does not write the
// status; see ChangeStatus. It corresponds to controllerutil.CreateOrUpdate of controller-runtime, which returns the
// conflict instead.
func (c *Typed[T]) CreateOrUpdate(ctx context.Context, object T, mutate func(T) error) (T, OperationResult, error) {
	return c.apply(ctx, api.KeyOf(object), change[T]{
		mutate: mutate,
		create: func(ctx context.Context) (T, error) { return c.createMutated(ctx, object, mutate) },
		write:  c.writeUpdate,
	})
}

// CreateOrPatch is CreateOrUpdate with a merge patch of the fields that mutate changed. So a concurrent change of
// another field is no conflict. A merge patch replaces a list as a whole; a patch that does so carries the resource
// version, and then a concurrent change is a conflict. It corresponds to controllerutil.CreateOrPatch of
// controller-runtime.
func (c *Typed[T]) CreateOrPatch(ctx context.Context, object T, mutate func(T) error) (T, OperationResult, error) {
	return c.apply(ctx, api.KeyOf(object), change[T]{
		mutate: mutate,
		create: func(ctx context.Context) (T, error) { return c.createMutated(ctx, object, mutate) },
		write:  c.writePatch,
	})
}

// Change is CreateOrUpdate for an object that must exist. If it does not, the error is NotFound.
func (c *Typed[T]) Change(ctx context.Context, key api.Key, mutate func(T) error) (T, OperationResult, error) {
	return c.apply(ctx, key, change[T]{mutate: mutate, write: c.writeUpdate})
}

// ChangeStatus is Change for the status of an object. It does not write what mutate changes in other fields.
func (c *Typed[T]) ChangeStatus(ctx context.Context, key api.Key, mutate func(T) error) (T, OperationResult, error) {
	return c.apply(ctx, key, change[T]{mutate: mutate, write: func(ctx context.Context, _, after T) (T, error) {
		return c.UpdateStatus(ctx, after, metav1.UpdateOptions{})
	}})
}

// change describes how to bring an object into the desired state.
type change[T api.Object] struct {
	mutate func(T) error
	create func(context.Context) (T, error) // nil if the object must exist
	write  func(ctx context.Context, before, after T) (T, error)
}

// apply makes a change. The first attempt reads from the cache, the attempts after a conflict from the server.
func (c *Typed[T]) apply(ctx context.Context, key api.Key, desired change[T]) (object T, result OperationResult, err error) {
	read := c.readCached
	err = apiclient.RetryOnConflict(ctx, apiclient.ConflictOptions{}, func(ctx context.Context) error {
		var err error
		object, result, err = c.attempt(ctx, key, read, desired)
		read = c.readLive
		return err
	})
	if err != nil {
		var none T
		return none, "", err
	}
	return object, result, nil
}

// readCached reads the object that a change begins with. It reads from the server if the informer has a Transform, or
// if the object is masked, because the cached object may lack fields.
func (c *Typed[T]) readCached(ctx context.Context, key api.Key) (T, error) {
	if v := c.source.current(); v != nil && v.informer.Options().Transform != nil {
		return c.readLive(ctx, key)
	}
	object, err := c.Peek(ctx, key)
	if err == nil && codec.RefuseMasked(object) != nil {
		return c.readLive(ctx, key)
	}
	return object, err
}

func (c *Typed[T]) readLive(ctx context.Context, key api.Key) (T, error) {
	return c.live.Get(ctx, key, metav1.GetOptions{})
}

// attempt makes a change once.
func (c *Typed[T]) attempt(ctx context.Context, key api.Key, read func(context.Context, api.Key) (T, error), desired change[T]) (T, OperationResult, error) {
	before, err := read(ctx, key)
	switch {
	case desired.create != nil && apierrors.IsNotFound(err):
		object, err := desired.create(ctx)
		return object, Created, c.toConflict(key, err, apierrors.IsAlreadyExists)
	case err != nil:
		return before, "", err
	}
	after, err := c.mutated(before, desired.mutate)
	if err != nil {
		return before, "", err
	}
	same, err := sameJSON(before, after)
	switch {
	case err != nil:
		return before, "", err
	case same:
		return after, Unchanged, nil
	}
	object, err := desired.write(ctx, before, after)
	if desired.create != nil {
		err = c.toConflict(key, err, apierrors.IsNotFound)
	}
	return object, Updated, err
}

// mutated returns a copy of an object after mutate.
func (c *Typed[T]) mutated(object T, mutate func(T) error) (T, error) {
	after := api.Clone(object)
	if err := mutate(after); err != nil {
		return after, fmt.Errorf("change %s %s: %w", c.Resource(), api.FormatKey(api.KeyOf(object)), err)
	}
	if api.KeyOf(after) != api.KeyOf(object) {
		return after, fmt.Errorf("cachedclient: the change of %s %s must not change its name or namespace",
			c.Resource(), api.FormatKey(api.KeyOf(object)))
	}
	return after, nil
}

func (c *Typed[T]) createMutated(ctx context.Context, object T, mutate func(T) error) (T, error) {
	after, err := c.mutated(object, mutate)
	if err != nil {
		return after, err
	}
	return c.Create(ctx, after, metav1.CreateOptions{})
}

// toConflict turns an error that contradicts the last read into a conflict, so that the next attempt reads from the
// server: the object exists although the read did not find it, or the other way round.
func (c *Typed[T]) toConflict(key api.Key, err error, contradicts func(error) bool) error {
	if !contradicts(err) {
		return err
	}
	return apierrors.NewConflict(c.Resource().GroupResource(), key.Name, err)
}

func (c *Typed[T]) writeUpdate(ctx context.Context, _, after T) (T, error) {
	return c.Update(ctx, after, metav1.UpdateOptions{})
}

func (c *Typed[T]) writePatch(ctx context.Context, before, after T) (T, error) {
	patch, err := mergePatch(before, after)
	if err != nil {
		return after, err
	}
	return c.Patch(ctx, api.KeyOf(after), patch, apiclient.PatchOptions{})
}

// sameJSON reports whether two objects have the same JSON. So nil equals empty where it is omitted, and the notation of
// a quantity does not count.
func sameJSON[T any](a, b T) (bool, error) {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if err := errors.Join(errX, errY); err != nil {
		return false, fmt.Errorf("cachedclient: encode a %T: %w", a, err)
	}
	return bytes.Equal(x, y), nil
}
