package reflector_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/deltafifo"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/reflector"
)

// tracker is a source in memory like client-go's fake clientsets: it has no WatchList, returns copies, does not use
// api.Options.Known, and never changes the version of an object.
type tracker struct {
	list   []thing
	events chan api.Event[*thing]
}

func (s *tracker) Collection() api.Collection { return api.Collection{Resource: things} }

func (s *tracker) List(_ context.Context, _ api.Options[*thing], each func(*thing) error) (metav1.ListMeta, error) {
	for _, t := range s.list {
		if err := each(&t); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return metav1.ListMeta{ResourceVersion: "7"}, nil
}

func (s *tracker) Watch(ctx context.Context, o api.Options[*thing]) iter.Seq2[api.Event[*thing], error] {
	return func(yield func(api.Event[*thing], error) bool) {
		if o.SendInitialEvents != nil {
			yield(api.Event[*thing]{}, fmt.Errorf("tracker: %w", api.ErrNoWatchList))
			return
		}
		for {
			select {
			case e := <-s.events:
				if e.Object == nil {
					yield(api.Event[*thing]{}, errExpired)
					return
				}
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// send sends an event with a copy of t.
func (s *tracker) send(kind apiwatch.EventType, t thing) {
	s.events <- api.Event[*thing]{Type: kind, Object: &t, ResourceVersion: t.version}
	synctest.Wait()
}

// relist ends the watch with a 410 and waits until the reflector has listed again.
func (s *tracker) relist() {
	s.events <- api.Event[*thing]{}
	<-time.After(time.Minute)
	synctest.Wait()
}

// track runs a reflector of a tracker with the objects a and b of version 7.
func track(t *testing.T, o options) (s *tracker, r *reflector.Reflector[*thing], store *recorder, stop func()) {
	s = &tracker{list: []thing{*at("a", "7"), *at("b", "7")}, events: make(chan api.Event[*thing])}
	store = newRecorder()
	r = reflector.New[*thing](s, store, o)
	stop = fixture.Start(t, r.Run)
	synctest.Wait()
	require.Len(t, store.log(), 1)
	return s, r, store, stop
}

func changed(name string) thing {
	t := *at(name, "7")
	t.content = "changed"
	return t
}

// No update is lost if a source changes objects without changing their versions.
func TestUnversionedChanges(t *testing.T) {
	bubble(t, "in a watch", func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		s, r, store, stop := track(t, options{Logger: zap.New(core)})
		s.send(apiwatch.Modified, *at("b", "7"))
		require.Len(t, store.log(), 1, "a repeated event is dropped")
		require.Equal(t, 1, r.Status().Counters.Stale)
		require.False(t, r.Status().Unversioned)

		s.send(apiwatch.Modified, changed("a"))
		require.Equal(t, []string{"put a@7 at 7"}, store.log()[1:], "the first changed object is passed on")
		known, _ := store.Get(api.Key{Name: "a"})
		require.Equal(t, "changed", known.content)
		require.True(t, r.Status().Unversioned)
		require.Equal(t, 1, r.Status().Counters.Stale)

		s.send(apiwatch.Modified, changed("a"))
		s.send(apiwatch.Modified, changed("b"))
		require.Len(t, store.log(), 4, "and every later event")
		require.Equal(t, 1, logs.Len(), "it is logged once")

		s.list[1] = changed("b")
		s.relist()
		require.Equal(t, []string{"overwrite [a@7 b@7] at 7"}, store.log()[4:], "every object of a list is passed on")
		stop()
	})
	bubble(t, "in a list", func(t *testing.T) {
		s, r, store, stop := track(t, options{})
		s.relist()
		require.Equal(t, []string{"replace [a@7 b@7] at 7"}, store.log()[1:])
		require.False(t, r.Status().Unversioned)

		s.list[1] = changed("b")
		s.relist()
		require.Equal(t, []string{"overwrite [a@7 b@7] at 7"}, store.log()[2:])
		known, _ := store.Get(api.Key{Name: "b"})
		require.Equal(t, "changed", known.content)
		require.True(t, r.Status().Unversioned)

		s.send(apiwatch.Modified, changed("a"))
		require.Len(t, store.log(), 4)
		stop()
	})
	bubble(t, "a deletion has the last state", func(t *testing.T) {
		s, _, store, stop := track(t, options{Tuning: reflector.Tuning{NoWatchDedup: true}})
		s.send(apiwatch.Deleted, changed("a"))
		require.Equal(t, []string{"delete a@7 at 7"}, store.log()[1:])
		require.NoError(t, store.Pop(t.Context(), func(b deltafifo.Batch[*thing]) {
			changes := b.Objects[0].Changes
			require.Equal(t, "changed", changes[len(changes)-1].Object.content)
		}))
		stop()
	})
	bubble(t, "a transform hides it, because it changes the known object", func(t *testing.T) {
		s, r, store, stop := track(t, options{Transform: func(t *thing) (*thing, error) { t.transformed++; return t, nil }})
		s.send(apiwatch.Modified, *at("a", "7"))
		s.relist()
		require.Len(t, store.log(), 2)
		require.False(t, r.Status().Unversioned)
		for _, object := range store.list {
			require.Equal(t, 1, object.transformed, "the list has the known object")
		}
		stop()
	})
	// The second WatchList uses api.Options.Known.
	unversioned := changed("a")
	for name, steps := range map[string][]any{
		"after the first change of a WatchList": {modified(at("b", "8")), modified(&unversioned), initialEnd("9"), stay},
		"after the end of a WatchList":          {initialEnd("9"), modified(&unversioned), stay},
	} {
		bubble(t, name, func(t *testing.T) {
			objects := []any{added(at("a", "7")), added(at("b", "7"))}
			b := run(t, options{}, watchList(append(objects[:2:2], initialEnd("7"), errExpired)...), watchList(append(objects, steps...)...))
			require.Equal(t, "changed", b.known("a").content)
			require.True(t, b.Status().Unversioned)
		})
	}
}

// Each list compares a hundred objects with the known ones.
func TestComparisonsOfEveryList(t *testing.T) {
	for _, n := range []int{99, 100} {
		bubble(t, fmt.Sprintf("object %d differs", n), func(t *testing.T) {
			s, r, _, stop := track(t, options{})
			s.list = nil
			for i := range 101 {
				s.list = append(s.list, *at(fmt.Sprintf("object-%03d", i), "7"))
			}
			s.relist()
			s.relist()
			require.False(t, r.Status().Unversioned)
			s.list[n].content = "changed"
			s.relist()
			require.Equal(t, n < 100, r.Status().Unversioned)
			stop()
		})
	}
}

// NoListReuse does not change watches, and NoWatchDedup does not change lists.
func TestReuseAndDedupAreSwitchedApart(t *testing.T) {
	bubble(t, "NoListReuse", func(t *testing.T) {
		s, r, store, stop := track(t, options{Tuning: reflector.Tuning{NoListReuse: true}})
		s.send(apiwatch.Modified, *at("a", "7"))
		require.Len(t, store.log(), 1, "an event is dropped")
		s.relist()
		require.Equal(t, []string{"overwrite [a@7 b@7] at 7"}, store.log()[1:])
		require.False(t, r.Status().Unversioned)
		stop()
	})
	bubble(t, "NoWatchDedup", func(t *testing.T) {
		s, r, store, stop := track(t, options{Tuning: reflector.Tuning{NoWatchDedup: true}})
		s.send(apiwatch.Modified, *at("a", "7"))
		require.Equal(t, []string{"put a@7 at 7"}, store.log()[1:])
		before, _ := store.Get(api.Key{Name: "b"})
		s.relist()
		after, _ := store.Get(api.Key{Name: "b"})
		require.Equal(t, []string{"replace [a@7 b@7] at 7"}, store.log()[2:])
		require.Same(t, before, after)
		require.False(t, r.Status().Unversioned)
		stop()
	})
}
