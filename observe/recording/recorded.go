package recording

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// recorded is one collection of a timeline: what a Source and a SteppedSource have in common.
type recorded[T api.Object] struct {
	resource  api.Resource
	namespace string
	first     []Change[T] // the state at the beginning, by key
	later     []Change[T] // in the order of their versions
}

func recordedOf[T api.Object](t *Timeline[T], r api.Resource, namespace string) recorded[T] {
	s := recorded[T]{resource: r, namespace: namespace}
	for _, c := range t.Ordered() {
		switch {
		case c.Resource.GroupVersionResource() != r.GroupVersionResource() || namespace != "" && c.Key.Namespace != namespace:
		case c.Initial:
			s.first = append(s.first, c)
		default:
			s.later = append(s.later, c)
		}
	}
	return s
}

// Collection implements api.ListerWatcher.
func (s *recorded[T]) Collection() api.Collection {
	return api.Collection{Resource: s.resource, Namespace: s.namespace}
}

var errSelectors = errors.New("recording: a source has no selectors; it has what was recorded")

// check refuses what a source cannot do.
func (s *recorded[T]) check(verb string, o metav1.ListOptions) error {
	if o.LabelSelector != "" || o.FieldSelector != "" {
		return fmt.Errorf("%s %s: %w", verb, s.resource, errSelectors)
	}
	return nil
}

// list passes the objects after a number of later changes to each, ordered by key. The version is the newest one of a
// change, or atLeast if that is newer.
func (s *recorded[T]) list(ctx context.Context, o api.Options[T], passed int, atLeast string, each func(T) error) (metav1.ListMeta, error) {
	if err := s.check("list", o.ListOptions); err != nil {
		return metav1.ListMeta{}, err
	}
	state := map[api.Key]Change[T]{}
	version := atLeast
	for _, c := range slices.Concat(s.first, s.later[:passed]) {
		if order, ok := api.CompareVersions(c.ResourceVersion, version); !ok || order > 0 {
			version = c.ResourceVersion
		}
		if state[c.Key] = c; c.Type == watch.Deleted {
			delete(state, c.Key)
		}
	}
	keys := make([]api.Key, 0, len(state))
	for key := range state {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b api.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		err := ctx.Err()
		var object T
		if err == nil {
			object, err = state[key].wanted(o)
		}
		if err == nil {
			err = each(object)
		}
		if err != nil {
			return metav1.ListMeta{}, fmt.Errorf("list %s: %w", s.resource, err)
		}
	}
	return metav1.ListMeta{ResourceVersion: version}, nil
}

// watched returns a watch, unless the options ask for what a source cannot do.
func (s *recorded[T]) watched(o api.Options[T], run func(yield func(api.Event[T], error) bool) error) iter.Seq2[api.Event[T], error] {
	return func(yield func(api.Event[T], error) bool) {
		err := s.check("watch", o.ListOptions)
		if err == nil && o.SendInitialEvents != nil {
			err = api.ErrNoWatchList
		}
		if err == nil {
			if o.OnOpen != nil {
				o.OnOpen()
			}
			err = run(yield)
		}
		if err != nil {
			yield(api.Event[T]{}, err)
		}
	}
}

// send yields a change. more is false if the watch ends.
func (s *recorded[T]) send(o api.Options[T], c Change[T], yield func(api.Event[T], error) bool) (more bool, err error) {
	object, err := c.wanted(o)
	if err != nil {
		return false, fmt.Errorf("watch %s: %w", s.resource, err)
	}
	return yield(api.Event[T]{Type: c.Type, Object: object, ResourceVersion: c.ResourceVersion}, nil), nil
}

// wanted decodes the state after a change, as the decoder of a client does: without managedFields if the caller does
// not need them. Otherwise a reconciler that writes whole objects would send other bodies than in production.
func (c Change[T]) wanted(o api.Options[T]) (T, error) {
	object, err := c.Object()
	if err != nil || !o.DropManagedFields {
		return object, err
	}
	if managed, ok := any(object).(interface {
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}); ok {
		managed.SetManagedFields(nil)
	}
	return object, nil
}

// timeout returns a channel that ends a watch, or nil, and a function that releases it.
func timeout[T any](o api.Options[T]) (end <-chan time.Time, stop func() bool) {
	if o.TimeoutSeconds == nil || *o.TimeoutSeconds <= 0 {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(time.Duration(*o.TimeoutSeconds) * time.Second)
	return timer.C, timer.Stop
}

// wait waits for the next change. ended reports that the watch ends instead.
func wait[E any](ctx context.Context, onWait func(), next <-chan E, end <-chan time.Time) (ended bool, err error) {
	if onWait != nil {
		onWait()
	}
	select {
	case <-next:
		return false, nil
	case <-end:
		return true, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}
