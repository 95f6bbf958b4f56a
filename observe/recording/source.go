package recording

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// Source is a recorded resource as a collection that can be listed and watched. On the fake time of a synctest bubble,
// an informer that reads it receives what production sent, with the recorded pauses, and every run of a test is the
// same. Make one with NewSource. It implements api.ListerWatcher[T], without selectors, pages and WatchLists. It does
// not repeat the failures of the recorded connection.
type Source[T api.Object] struct {
	resource  api.Resource
	namespace string
	first     []Change[T]     // the state at the beginning, by key
	later     []Change[T]     // in the order of their versions
	after     []time.Duration // of each later change: the time since the beginning of the recording
	start     time.Time       // of the source
}

// apart is the pause between changes that the client received at once. On fake time, an informer and its controller
// finish one before the next, so that no race decides the order of their work.
const apart = time.Microsecond

// NewSource returns a source of a resource of a timeline, in one namespace or, if that is empty, in all. The source
// begins now, with the state of the first list; the changes after it follow with their pauses. Sources that begin at
// the same time agree about the time of the recording.
func NewSource[T api.Object](t *Timeline[T], r api.Resource, namespace string) *Source[T] {
	s := &Source[T]{resource: r, namespace: namespace, start: time.Now()}
	last := -apart
	for _, c := range t.Ordered() {
		switch {
		case c.Resource.GroupVersionResource() != r.GroupVersionResource() || namespace != "" && c.Key.Namespace != namespace:
		case c.Initial:
			s.first = append(s.first, c)
		default:
			last = max(c.Time.Sub(t.listed), last+apart)
			s.later, s.after = append(s.later, c), append(s.after, last)
		}
	}
	return s
}

// End returns the time of the last change in the life of the source.
func (s *Source[T]) End() time.Time {
	if len(s.later) == 0 {
		return s.start
	}
	return s.due(len(s.later) - 1)
}

// due returns the time of a later change in the life of the source.
func (s *Source[T]) due(i int) time.Time { return s.start.Add(s.after[i]) }

// Collection implements api.ListerWatcher.
func (s *Source[T]) Collection() api.Collection {
	return api.Collection{Resource: s.resource, Namespace: s.namespace}
}

var errSelectors = errors.New("recording: a source has no selectors; it has what was recorded")

// check refuses what a source cannot do.
func (s *Source[T]) check(verb string, o metav1.ListOptions) error {
	if o.LabelSelector != "" || o.FieldSelector != "" {
		return fmt.Errorf("%s %s: %w", verb, s.resource, errSelectors)
	}
	return nil
}

// List passes the present objects to each, ordered by key. The options except selectors have no effect.
func (s *Source[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	if err := s.check("list", o.ListOptions); err != nil {
		return metav1.ListMeta{}, err
	}
	now := time.Now()
	passed := sort.Search(len(s.later), func(i int) bool { return s.due(i).After(now) })
	state := map[api.Key]Change[T]{}
	version := "1"
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

// Watch yields the changes after a version when they are due. After the last one, the watch stays open until its
// timeout.
func (s *Source[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return func(yield func(api.Event[T], error) bool) {
		err := s.check("watch", o.ListOptions)
		if err == nil && o.SendInitialEvents != nil {
			err = api.ErrNoWatchList
		}
		if err == nil {
			if o.OnOpen != nil {
				o.OnOpen()
			}
			err = s.watch(ctx, o, yield)
		}
		if err != nil {
			yield(api.Event[T]{}, err)
		}
	}
}

func (s *Source[T]) watch(ctx context.Context, o api.Options[T], yield func(api.Event[T], error) bool) error {
	var end <-chan time.Time
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		timer := time.NewTimer(time.Duration(*o.TimeoutSeconds) * time.Second)
		defer timer.Stop()
		end = timer.C
	}
	next := time.NewTimer(0)
	defer next.Stop()
	for i, c := range s.later {
		if order, ok := api.CompareVersions(c.ResourceVersion, o.ResourceVersion); ok && order <= 0 {
			continue
		}
		if pause := time.Until(s.due(i)); pause > 0 {
			next.Reset(pause)
			if ended, err := wait(ctx, o.OnWait, next.C, end); ended {
				return err
			}
		}
		object, err := c.wanted(o)
		if err != nil {
			return fmt.Errorf("watch %s: %w", s.resource, err)
		}
		if !yield(api.Event[T]{Type: c.Type, Object: object, ResourceVersion: c.ResourceVersion}, nil) {
			return nil
		}
	}
	_, err := wait(ctx, o.OnWait, nil, end)
	return err
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

// wait waits for the next change. ended reports that the watch ends instead.
func wait(ctx context.Context, onWait func(), next, end <-chan time.Time) (ended bool, err error) {
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
