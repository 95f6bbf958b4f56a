package recording

import (
	"context"
	"fmt"
	"iter"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
)

// SteppedSource is a Source that does not follow the time: the test moves it to a version of the collection. An
// informer that reads it then has exactly the cache that production had at this version. With it, a reconciler decides
// again what it decided in production, from the same state. Make one with NewSteppedSource. It implements
// api.ListerWatcher[T] with the limits of a Source.
type SteppedSource[T api.Object] struct {
	recorded[T]
	end string // the newest version that the recording knows

	mu      sync.Mutex // guards the fields below
	passed  int        // number of later changes that clients can see
	version string     // that clients can see
	moved   chan struct{}
}

// NewSteppedSource returns a source of a resource of a timeline, in one namespace or, if that is empty, in all. It has
// the state of the first list until the first call of Advance.
func NewSteppedSource[T api.Object](t *Timeline[T], r api.Resource, namespace string) *SteppedSource[T] {
	s := &SteppedSource[T]{recorded: recordedOf(t, r, namespace), version: "1", moved: make(chan struct{})}
	for _, c := range s.first {
		s.version = newest(s.version, c.ResourceVersion)
	}
	s.end = s.version
	for _, sc := range t.Scopes() {
		if sc.Resource.GroupVersionResource() == r.GroupVersionResource() && (sc.Namespace == "" || namespace == "" || sc.Namespace == namespace) {
			s.end = newest(s.end, sc.state.Version)
		}
	}
	return s
}

// newest returns the newer one of two versions, and a if they have no order.
func newest(a, b string) string {
	if order, ok := api.CompareVersions(a, b); ok && order < 0 {
		return b
	}
	return a
}

// Advance makes the changes up to a version visible, and then the version itself, as a bookmark does. It does not wait
// for an informer that reads the source; in a bubble, synctest.Wait does. The error says that the source is at a newer
// version already, that the recording ends before the version, or that the version is no number.
func (s *SteppedSource[T]) Advance(version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, ok := api.CompareVersions(version, s.version)
	switch {
	case !ok:
		return fmt.Errorf("recording: %s cannot advance from version %q to %q: they have no order", s.resource, s.version, version)
	case order < 0:
		return fmt.Errorf("recording: %s cannot go back from version %s to %s", s.resource, s.version, version)
	case newest(s.end, version) != s.end:
		return fmt.Errorf("recording: %s cannot advance to version %s: the recording ends with version %s", s.resource, version, s.end)
	}
	for s.passed < len(s.later) && newest(version, s.later[s.passed].ResourceVersion) == version {
		s.passed++
	}
	s.version = version
	close(s.moved)
	s.moved = make(chan struct{})
	return nil
}

// at returns what clients can see, and a channel that is closed when they can see more.
func (s *SteppedSource[T]) at() (passed int, version string, moved <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passed, s.version, s.moved
}

// List passes the present objects to each, ordered by key. The options except selectors have no effect.
func (s *SteppedSource[T]) List(ctx context.Context, o api.Options[T], each func(T) error) (metav1.ListMeta, error) {
	passed, version, _ := s.at()
	return s.list(ctx, o, passed, version, each)
}

// Watch yields the changes after a version, and those of each Advance with a bookmark after them. It stays open until
// its timeout.
func (s *SteppedSource[T]) Watch(ctx context.Context, o api.Options[T]) iter.Seq2[api.Event[T], error] {
	return s.watched(o, func(yield func(api.Event[T], error) bool) error { return s.watch(ctx, o, yield) })
}

func (s *SteppedSource[T]) watch(ctx context.Context, o api.Options[T], yield func(api.Event[T], error) bool) error {
	end, stop := timeout(o)
	defer stop()
	sent, next := o.ResourceVersion, 0
	for {
		passed, version, moved := s.at()
		for ; next < passed; next++ {
			c := s.later[next]
			if newest(o.ResourceVersion, c.ResourceVersion) == o.ResourceVersion {
				continue
			}
			sent = c.ResourceVersion // several changes can have it: those that a later list showed
			if more, err := s.send(o, c, yield); !more {
				return err
			}
		}
		if newest(sent, version) != sent {
			sent = version
			if !yield(api.Event[T]{Type: watch.Bookmark, ResourceVersion: version}, nil) {
				return nil
			}
		}
		if ended, err := wait(ctx, o.OnWait, moved, end); ended {
			return err
		}
	}
}
