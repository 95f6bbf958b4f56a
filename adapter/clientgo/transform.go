package clientgo

import (
	"context"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// transforming is a source whose objects are transformed before the informer gets them.
type transforming[T Object] struct {
	api.Wrapper[T]
	transform func(T) (T, error) // nil for none
}

// Metadata returns the metadata of the source's objects, or nil if a transform may change the identities.
func (s *transforming[T]) Metadata() api.ListerWatcher[*metav1.PartialObjectMetadata] {
	if s.transform == nil {
		return api.MetadataOf(s.ListerWatcher)
	}
	return nil
}

// List lists the source.
func (s *transforming[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	if s.transform == nil {
		return s.ListerWatcher.List(ctx, o, each)
	}
	o.ShareParts = false // a transform may change an object, and only this one
	reused := noteReused(&o)
	return s.ListerWatcher.List(ctx, o, func(object T) error {
		object, skip, err := s.apply(object, "", o, reused)
		if skip || err != nil {
			return err
		}
		return each(object)
	})
}

// Watch watches the source.
func (s *transforming[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	if s.transform == nil {
		return s.ListerWatcher.Watch(ctx, o)
	}
	o.ShareParts = false
	reused := noteReused(&o)
	return func(yield func(api.Event[T], error) bool) {
		for event, err := range s.ListerWatcher.Watch(ctx, o) {
			switch event.Type {
			case watch.Added, watch.Modified, watch.Deleted:
				if err != nil {
					break
				}
				skip := false
				if event.Object, skip, err = s.apply(event.Object, event.Type, o, reused); skip && err == nil {
					continue
				}
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// noteReused makes o remember the cached object that the source found last, and returns a function that reports whether
// an object is that one. The source may pass it on again, but it was transformed when it was new.
func noteReused[T Object](o *api.Options[T]) func(T) bool {
	if o.Known == nil {
		return func(T) bool { return false }
	}
	var last T
	known := o.Known
	o.Known = func(namespace, name []byte) (T, bool) {
		object, found := known(namespace, name)
		if found {
			last = object
		}
		return object, found
	}
	return func(object T) bool { return api.Identical(object, last) }
}

// apply transforms an object. If that fails, apply reports the object as undecodable, and skip is set.
func (s *transforming[T]) apply(object T, kind watch.EventType, o api.Options[T], reused func(T) bool) (result T, skip bool, err error) {
	if reused(object) {
		return object, false, nil
	}
	bad := &api.UndecodableError{
		Resource: s.Collection().Resource, Key: api.KeyOf(object), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Type: kind,
	}
	if result, bad.Err = s.call(object); bad.Err == nil {
		return result, false, nil
	}
	if o.OnUndecodable == nil {
		return result, true, bad
	}
	return result, true, o.OnUndecodable(bad)
}

func (s *transforming[T]) call(object T) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("transform: panic: %v", p)
		}
	}()
	if result, err = s.transform(object); err != nil {
		err = fmt.Errorf("transform: %w", err)
	}
	return result, err
}
