package informer_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
)

// widget is an object type as a user declares it. Fields that it does not declare are dropped.
type widget struct {
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size"`
}

var widgets = api.Resource{Group: "leat.test", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true}

// source is a collection in memory that supports WatchList. It serves tests of the informer without HTTP;
// server_test.go has the tests with the test server.
type source struct {
	mu      sync.Mutex
	version int
	uids    int
	objects map[api.Key]*widget
	log     []api.Event[*widget]
	changed chan struct{} // closed and replaced at every change
}

func newSource() *source {
	return &source{objects: map[api.Key]*widget{}, changed: make(chan struct{})}
}

// set creates or changes default/name and returns the version.
func (s *source) set(name string, size int) string {
	return s.record(name, func(key api.Key, old *widget) *widget {
		w := &widget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Size: size}
		if old == nil {
			s.uids++
			w.UID = types.UID(fmt.Sprint("uid-", s.uids))
		} else {
			w.UID = old.UID
		}
		return w
	})
}

func (s *source) remove(name string) string {
	return s.record(name, func(api.Key, *widget) *widget { return nil })
}

func (s *source) record(name string, change func(api.Key, *widget) *widget) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	version := fmt.Sprint(s.version)
	key := api.Key{Namespace: "default", Name: name}
	old := s.objects[key]
	w := change(key, old)
	kind := watch.Modified
	switch {
	case w == nil:
		kind, w = watch.Deleted, &widget{ObjectMeta: *old.DeepCopy(), Size: old.Size}
		delete(s.objects, key)
	case old == nil:
		kind = watch.Added
	}
	w.ResourceVersion = version
	if kind != watch.Deleted {
		s.objects[key] = w
	}
	s.log = append(s.log, api.Event[*widget]{Type: kind, Object: w, ResourceVersion: version})
	close(s.changed)
	s.changed = make(chan struct{})
	return version
}

// bookmark raises the version without a change to an object.
func (s *source) bookmark() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	version := fmt.Sprint(s.version)
	s.log = append(s.log, api.Event[*widget]{Type: watch.Bookmark, ResourceVersion: version})
	close(s.changed)
	s.changed = make(chan struct{})
	return version
}

func (s *source) Collection() api.Collection { return api.Collection{Resource: widgets} }

func (s *source) List(_ context.Context, _ api.Options[*widget], each func(*widget) error) (metav1.ListMeta, error) {
	initial, version, _ := s.snapshot()
	for _, w := range initial {
		if err := each(w); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: version}, nil
}

func (s *source) snapshot() (sorted []*widget, version string, at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.objects {
		sorted = append(sorted, w)
	}
	slices.SortFunc(sorted, func(a, b *widget) int { return cmp.Compare(a.Name, b.Name) })
	return sorted, fmt.Sprint(s.version), len(s.log)
}

func (s *source) Watch(ctx context.Context, o api.Options[*widget]) iter.Seq2[api.Event[*widget], error] {
	return func(yield func(api.Event[*widget], error) bool) {
		initial, version, at := s.snapshot()
		if o.SendInitialEvents == nil {
			panic("this source only streams")
		}
		for _, w := range initial {
			if !yield(api.Event[*widget]{Type: watch.Added, Object: w, ResourceVersion: w.ResourceVersion}, nil) {
				return
			}
		}
		if !yield(api.Event[*widget]{Type: watch.Bookmark, ResourceVersion: version, InitialEventsEnd: true}, nil) {
			return
		}
		for {
			s.mu.Lock()
			events, changed := s.log[at:], s.changed
			at = len(s.log)
			s.mu.Unlock()
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if o.OnWait != nil {
				o.OnWait()
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(api.Event[*widget]{}, ctx.Err())
				return
			}
		}
	}
}

// options returns the options of most tests here: with the mutation detector.
func options(t *testing.T) informer.Options[*widget] {
	return informer.Options[*widget]{
		Mutations: informer.DetectMutations(func(m cache.Mutation) { t.Errorf("an object of the cache was changed: %v", m) }),
	}
}

// running runs an informer until the test ends. stop ends it earlier. An error of Run fails the test.
func running[T api.Object](t *testing.T, i *informer.Informer[T]) (stop func()) {
	t.Helper()
	return fixture.Start(t, i.Run)
}

// onSource runs a test in a bubble, with a source.
func onSource(t *testing.T, test func(t *testing.T, s *source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newSource()) })
}

// recorder is a handler that records its notifications as lines.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) handle(n api.Change[*widget]) {
	line := fmt.Sprintf("%s %s %d", n.Type, n.Object.Name, n.Object.Size)
	if n.Type == api.Updated {
		line = fmt.Sprintf("%s %s %d→%d", n.Type, n.Object.Name, n.Old.Size, n.Object.Size)
	}
	for flag, set := range map[string]bool{"initial": n.InitialList, "resync": n.Resync, "unknown": n.FinalStateUnknown} {
		if set {
			line += " " + flag
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

// take returns the lines since the last take.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}
