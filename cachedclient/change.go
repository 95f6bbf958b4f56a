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
)

// Outcome says what a change came to.
type OperationResult string

const (
	// Unchanged is an object that was as it should be: nothing was sent.
	Unchanged OperationResult = "unchanged"
	// Created is an object that was not there.
	Created OperationResult = "created"
	// Updated is an object that was there and is different now.
	Updated OperationResult = "updated"
)

// CreateOrUpdate makes an object be as mutate makes it. mutate is called with a copy of the object as it is, or, if
// there is none, of the given one, which otherwise only says which is meant; it must not change its name or namespace,
// and may be called several times. Nothing is sent if the object would be written as it is.
//
// What is read first is the cache. If the server knows better, because the object has changed or is there already, it
// is read from the server and mutated anew, up to five times. It returns the object as it is then. The status is not
// written; see ChangeStatus. It corresponds to controllerutil.CreateOrUpdate of controller-runtime, which returns the
// conflict.
func (r *Typed[T]) CreateOrUpdate(ctx context.Context, object T, mutate func(T) error) (T, OperationResult, error) {
	return r.change(ctx, api.KeyOf(object), change[T]{
		mutate: mutate,
		create: func(ctx context.Context) (T, error) { return r.createAs(ctx, object, mutate) },
		write:  r.replace,
	})
}

// CreateOrPatch is CreateOrUpdate with a merge patch of what mutate has changed, so that what others change meanwhile
// is no conflict. Only where a list changes, which a merge patch replaces whole, does the patch carry the version. It
// corresponds to controllerutil.CreateOrPatch of controller-runtime.
func (r *Typed[T]) CreateOrPatch(ctx context.Context, object T, mutate func(T) error) (T, OperationResult, error) {
	return r.change(ctx, api.KeyOf(object), change[T]{
		mutate: mutate,
		create: func(ctx context.Context) (T, error) { return r.createAs(ctx, object, mutate) },
		write:  r.patch,
	})
}

// Change is CreateOrUpdate for an object that has to be there already; the error is NotFound if it is not.
func (r *Typed[T]) Change(ctx context.Context, key api.Key, mutate func(T) error) (T, OperationResult, error) {
	return r.change(ctx, key, change[T]{mutate: mutate, write: r.replace})
}

// ChangeStatus is Change for the status of an object: of what mutate does, nothing else is written.
func (r *Typed[T]) ChangeStatus(ctx context.Context, key api.Key, mutate func(T) error) (T, OperationResult, error) {
	return r.change(ctx, key, change[T]{mutate: mutate, write: func(ctx context.Context, _, after T) (T, error) {
		return r.UpdateStatus(ctx, after, metav1.UpdateOptions{})
	}})
}

// change is how an object is to become what it should be.
type change[T api.Object] struct {
	mutate func(T) error
	create func(context.Context) (T, error) // nil if the object has to be there
	write  func(ctx context.Context, before, after T) (T, error)
}

func (r *Typed[T]) change(ctx context.Context, key api.Key, c change[T]) (object T, outcome OperationResult, err error) {
	read := r.base
	err = apiclient.RetryOnConflict(ctx, apiclient.ConflictOptions{}, func(ctx context.Context) error {
		var err error
		object, outcome, err = r.try(ctx, key, read, c)
		read = r.readAnew
		return err
	})
	if err != nil {
		var none T
		return none, "", err
	}
	return object, outcome, nil
}

// base reads what a change begins with: a copy from the cache, unless that lacks what a Transform has dropped.
func (r *Typed[T]) base(ctx context.Context, key api.Key) (T, error) {
	if h := r.held.now(); h != nil && h.informer.Options().Transform != nil {
		return r.readAnew(ctx, key)
	}
	return r.Peek(ctx, key)
}

func (r *Typed[T]) readAnew(ctx context.Context, key api.Key) (T, error) {
	return r.live.Get(ctx, key, metav1.GetOptions{})
}

// try makes one attempt.
func (r *Typed[T]) try(ctx context.Context, key api.Key, read func(context.Context, api.Key) (T, error), c change[T]) (T, OperationResult, error) {
	before, err := read(ctx, key)
	switch {
	case c.create != nil && apierrors.IsNotFound(err):
		object, err := c.create(ctx)
		return object, Created, r.contested(key, err, apierrors.IsAlreadyExists)
	case err != nil:
		return before, "", err
	}
	after, err := r.mutated(before, c.mutate)
	if err != nil {
		return before, "", err
	}
	same, err := writtenAlike(before, after)
	switch {
	case err != nil:
		return before, "", err
	case same:
		return after, Unchanged, nil
	}
	object, err := c.write(ctx, before, after)
	if c.create != nil {
		err = r.contested(key, err, apierrors.IsNotFound)
	}
	return object, Updated, err
}

// mutated returns a copy that mutate has changed.
func (r *Typed[T]) mutated(object T, mutate func(T) error) (T, error) {
	after := api.Clone(object)
	if err := mutate(after); err != nil {
		return after, fmt.Errorf("change %s %s: %w", r.Resource(), api.FormatKey(api.KeyOf(object)), err)
	}
	if api.KeyOf(after) != api.KeyOf(object) {
		return after, fmt.Errorf("cachedclient: the change of %s %s must not give it another name or namespace",
			r.Resource(), api.FormatKey(api.KeyOf(object)))
	}
	return after, nil
}

func (r *Typed[T]) createAs(ctx context.Context, object T, mutate func(T) error) (T, error) {
	after, err := r.mutated(object, mutate)
	if err != nil {
		return after, err
	}
	return r.Create(ctx, after, metav1.CreateOptions{})
}

// contested makes a conflict of an object that is there although it was not found, or the other way round: it is to be
// read anew.
func (r *Typed[T]) contested(key api.Key, err error, contradicts func(error) bool) error {
	if !contradicts(err) {
		return err
	}
	return apierrors.NewConflict(r.Resource().GroupResource(), key.Name, err)
}

func (r *Typed[T]) replace(ctx context.Context, _, after T) (T, error) {
	return r.Update(ctx, after, metav1.UpdateOptions{})
}

func (r *Typed[T]) patch(ctx context.Context, before, after T) (T, error) {
	patch, err := mergePatch(before, after)
	if err != nil {
		return after, err
	}
	return r.Patch(ctx, api.KeyOf(after), patch, apiclient.PatchOptions{})
}

// writtenAlike tells whether two objects are the same to a server: nil or empty, and a quantity in whatever notation,
// are.
func writtenAlike[T any](a, b T) (bool, error) {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if err := errors.Join(errX, errY); err != nil {
		return false, fmt.Errorf("cachedclient: write a %T: %w", a, err)
	}
	return bytes.Equal(x, y), nil
}
