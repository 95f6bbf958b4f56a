package recording

import (
	"context"
	"iter"
	"sort"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// Source is a recorded resource as a collection that can be listed and watched. On the fake time of a synctest bubble,
// an informer that reads it receives what production sent, with the recorded pauses, and every run of a test is the
// same. Make one with NewSource. It implements api.ListerWatcher[T], without selectors, pages and WatchLists. It does
// not repeat the failures of the recorded connection.
type Source[T api.Object] struct {
	recorded[T]
	after []time.Duration // of each later change: the time since the beginning of the recording
	start time.Time       // of the source
}

// apart is the pause between changes that the client received at once. On fake time, an informer and its controller
// finish one before the next, so that no race decides the order of their work.
const apart = time.Microsecond

// NewSource returns a source of a resource of a timeline, in one namespace or, if that is empty, in all. The source
// begins now, with the state of the first list; the changes after it follow with their pauses. Sources that begin at
// the same time agree about the time of the recording.
func NewSource[T api.Object](t *Timeline[T], r api.Resource, namespace string) *Source[T] {
	s := &Source[T]{recorded: recordedOf(t, r, namespace), start: time.Now()}
	last := -apart
	for _, c := range s.later {
		last = max(c.Time.Sub(t.listed), last+apart)
		s.after = append(s.after, last)
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

// List passes the present objects to each, ordered by key. The options except selectors have no effect.
func (s *Source[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	now := time.Now()
	passed := sort.Search(len(s.later), func(i int) bool { return s.due(i).After(now) })
	return s.list(ctx, o, passed, "1", each)
}

// Watch yields the changes after a version when they are due. After the last one, the watch stays open until its
// timeout.
func (s *Source[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return s.watched(o, func(yield func(api.Event[T], error) bool) error { return s.watch(ctx, o, yield) })
}

func (s *Source[T]) watch(ctx context.Context, o api.Options[T], yield func(api.Event[T], error) bool) error {
	end, stop := timeout(o)
	defer stop()
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
		if more, err := s.send(o, c, yield); !more {
			return err
		}
	}
	_, err := wait[time.Time](ctx, o.OnWait, nil, end)
	return err
}
