package packed_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/scale/packed"
	"github.com/leatproject/leat/testserver"
)

// counting is a coding that counts its calls.
type counting struct {
	trainings, samples int
	size               int // of a sample
	encoded            atomic.Int64
	decoded            atomic.Int64
	fail               bool
}

func (c *counting) train(samples [][]byte) (encode func(dst, src []byte) []byte, decode func(dst, src []byte) ([]byte, error), err error) {
	c.trainings++
	c.samples, c.size = len(samples), len(samples[0])
	if c.fail {
		return nil, nil, errors.New("no dictionary")
	}
	inner, back, err := flatten(samples)
	encode = func(dst, src []byte) []byte {
		c.encoded.Add(1)
		return inner(dst, src)
	}
	decode = func(dst, src []byte) ([]byte, error) {
		c.decoded.Add(1)
		return back(dst, src)
	}
	return encode, decode, err
}

// with runs f in a bubble, with an informer of pods over protobuf that is synced.
func with(t *testing.T, count int, o informer.Options[*corev1.Pod], test func(*fixture.Fixture, *informer.Informer[*corev1.Pod])) {
	t.Helper()
	fixture.Run(t, testserver.Options{}, func(t *testing.T, f *fixture.Fixture) {
		for n := range count {
			f.Create(pods, named(fmt.Sprintf("pod-%04d", n), "registry.example.com/image:v1"))
		}
		i := informer.New(apiclient.NewTyped[*corev1.Pod](f.Connect(listerwatchertest.Protobuf), pods, ""), o)
		f.Start(i.Run)
		synctest.Wait()
		require.Equal(t, count, i.Snapshot().Len())
		test(f, i)
	})
}

func named(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Annotations: map[string]string{"note": strings.Repeat("all pods have this ", 20)},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

// TestIdentityOnlyDecodesNothing counts the decodings for handlers that read only identities, for handlers that read
// objects, and for readers.
func TestIdentityOnlyDecodesNothing(t *testing.T) {
	c := &counting{}
	with(t, 100, informer.Options[*corev1.Pod]{Hold: packed.Coded[*corev1.Pod](c.train)}, func(f *fixture.Fixture, i *informer.Informer[*corev1.Pod]) {
		require.Equal(t, 1, c.trainings)
		require.EqualValues(t, 100, c.encoded.Load())
		got := 0
		must.Get(i.Subscribe(func(n api.Change[*corev1.Pod]) {
			require.NotEmpty(t, n.Object.Name+n.Object.ResourceVersion+string(n.Object.UID))
			require.Empty(t, n.Object.Spec.Containers)
			got++
		}, informer.HandlerOptions{IdentityOnly: true}))(t)
		f.Update(pods, named("pod-0001", "registry.example.com/image:v2"))
		synctest.Wait()
		require.Equal(t, 101, got)
		require.Zero(t, c.decoded.Load())
		require.Len(t, i.Snapshot().List(), 100)
		require.EqualValues(t, 99, c.decoded.Load(), "the one that has changed is still plain")
	})
}

// TestObservedChangesAreUnpacked observes one of two pods that change.
func TestObservedChangesAreUnpacked(t *testing.T) {
	c := &counting{}
	with(t, 40, informer.Options[*corev1.Pod]{Hold: packed.Coded[*corev1.Pod](c.train)}, func(f *fixture.Fixture, i *informer.Informer[*corev1.Pod]) {
		var seen []informer.TracedChange
		defer i.Trace(informer.Trace{
			Wanted: func(key api.Key) bool { return key.Name == "pod-0001" },
			Change: func(n informer.TracedChange) { seen = append(seen, n) },
		})()
		for _, name := range []string{"pod-0001", "pod-0002"} {
			f.Update(pods, named(name, "registry.example.com/image:v2"))
		}
		synctest.Wait()
		require.Len(t, seen, 1)
		require.Equal(t, "registry.example.com/image:v2", seen[0].Object.(*corev1.Pod).Spec.Containers[0].Image)
		require.NotEqual(t, "registry.example.com/image:v2", seen[0].Old.(*corev1.Pod).Spec.Containers[0].Image)
		require.EqualValues(t, 1, c.decoded.Load(), "the new state is still plain")
		require.Len(t, slices.Collect(i.Keys()), 40)
		require.EqualValues(t, 1, c.decoded.Load(), "keys are not decoded")
	})
}

// TestHandlersOfOneChangeShareItsObjects has three handlers, which decode the old and the new state once.
func TestHandlersOfOneChangeShareItsObjects(t *testing.T) {
	c := &counting{}
	with(t, 40, informer.Options[*corev1.Pod]{Hold: packed.CodedAfter[*corev1.Pod](0, c.train)}, func(f *fixture.Fixture, i *informer.Informer[*corev1.Pod]) {
		var mu sync.Mutex
		seen := map[*corev1.Pod]int{}
		for range 3 {
			must.Get(i.Subscribe(func(n api.Change[*corev1.Pod]) {
				mu.Lock()
				defer mu.Unlock()
				seen[n.Object]++
			}, informer.HandlerOptions{}))(t)
		}
		synctest.Wait()
		require.EqualValues(t, 40, c.decoded.Load())
		f.Update(pods, named("pod-0001", "registry.example.com/image:v2"))
		synctest.Wait()
		require.EqualValues(t, 41, c.decoded.Load(), "the old state was decoded before")
		require.Len(t, seen, 41)
		for _, times := range seen {
			require.Equal(t, 3, times)
		}
		mine, _ := i.Cache().Get(api.Key{Namespace: "default", Name: "pod-0001"})
		require.Zero(t, seen[mine], "a reader owns its object")
	})
}

// TestTrainsOnTheFirstList has lists of several lengths.
func TestTrainsOnTheFirstList(t *testing.T) {
	for _, tc := range []struct{ objects, trainings, samples int }{{0, 0, 0}, {31, 0, 0}, {32, 1, 32}, {511, 1, 511}, {1500, 1, 512}} {
		c := &counting{}
		o := informer.Options[*corev1.Pod]{Hold: packed.Coded[*corev1.Pod](c.train)}
		with(t, tc.objects, o, func(_ *fixture.Fixture, i *informer.Informer[*corev1.Pod]) {
			require.Equal(t, tc.trainings, c.trainings, tc.objects)
			require.Equal(t, tc.samples, c.samples)
			require.EqualValues(t, tc.objects*tc.trainings, c.encoded.Load(), "every object of the list is encoded")
			require.Len(t, i.Snapshot().List(), tc.objects)
		})
	}
}

// TestChangedObjectsAreEncodedLater changes one object again and again, and then more objects than may stay plain.
func TestChangedObjectsAreEncodedLater(t *testing.T) {
	const objects, room = 60, 10
	c := &counting{}
	with(t, objects, informer.Options[*corev1.Pod]{Hold: packed.Coded[*corev1.Pod](c.train)},
		func(*fixture.Fixture, *informer.Informer[*corev1.Pod]) {}) // for the size of a pod
	hold := packed.CodedAfter[*corev1.Pod]((c.size+256)*room+c.size/2, c.train)
	c.encoded.Store(0)
	with(t, objects, informer.Options[*corev1.Pod]{Hold: hold}, func(f *fixture.Fixture, i *informer.Informer[*corev1.Pod]) {
		update := func(n int, image string) {
			f.Update(pods, named(fmt.Sprintf("pod-%04d", n), image))
			synctest.Wait()
		}
		for n := range 50 {
			update(7, fmt.Sprintf("registry.example.com/image:v%d", n%10))
		}
		require.EqualValues(t, objects, c.encoded.Load(), "only those of the list")
		for n := range 2 * room {
			update(n, "registry.example.com/image:v2")
			update(n, "registry.example.com/image:v3")
		}
		require.EqualValues(t, objects+room, c.encoded.Load(), "the newest states of all but those that changed last")
		for n := range room {
			f.Delete(pods, api.Key{Namespace: "default", Name: fmt.Sprintf("pod-%04d", n)})
		}
		synctest.Wait()
		require.EqualValues(t, objects+2*room, c.encoded.Load(), "last states push others out")
		for n := room; n < objects; n++ {
			p, _ := i.Cache().Get(api.Key{Namespace: "default", Name: fmt.Sprintf("pod-%04d", n)})
			want := "registry.example.com/image:v1"
			if n < 2*room {
				want = "registry.example.com/image:v3"
			}
			require.Equal(t, want, p.Spec.Containers[0].Image)
		}
	})
}

// TestTrainingMayFail keeps plain bytes.
func TestTrainingMayFail(t *testing.T) {
	c := &counting{fail: true}
	with(t, 1300, informer.Options[*corev1.Pod]{Hold: packed.Coded[*corev1.Pod](c.train)}, func(_ *fixture.Fixture, i *informer.Informer[*corev1.Pod]) {
		require.Positive(t, c.trainings)
		require.Zero(t, c.encoded.Load())
		require.Len(t, i.Snapshot().List(), 1300)
	})
}

// TestUsersShareEqualHoldings shares informers through a factory.
func TestUsersShareEqualHoldings(t *testing.T) {
	client := fixture.New(t, testserver.Options{}).Client
	f := factory.New(factory.Options{})
	share := func(hold informer.Holding[*corev1.Pod]) error {
		_, err := factory.Shared(f, apiclient.NewTyped[*corev1.Pod](client, pods, ""), informer.Options[*corev1.Pod]{Hold: hold})
		return err
	}
	require.NoError(t, share(packed.Bytes[*corev1.Pod]()))
	require.NoError(t, share(packed.Bytes[*corev1.Pod]()))
	var conflict *factory.ConflictError
	require.ErrorAs(t, share(nil), &conflict)
	require.Equal(t, "Hold", conflict.Option)
	require.ErrorAs(t, share(packed.Coded[*corev1.Pod](flatten)), &conflict)
	require.Panics(t, func() { packed.Coded[*corev1.Pod](nil) })
}

// quiet is a source whose events come 77 s after its initial state, during a probe of five seconds, and 10 s later.
type quiet struct{}

func (quiet) Collection() api.Collection { return api.Collection{Resource: pods} }

func (quiet) List(context.Context, api.Options[*corev1.Pod], func(*corev1.Pod) error) (metav1.ListMeta, error) {
	<-time.After(5 * time.Second)
	return metav1.ListMeta{ResourceVersion: "12"}, nil
}

func (quiet) Watch(ctx context.Context, _ api.Options[*corev1.Pod]) iter.Seq2[api.Event[*corev1.Pod], error] {
	return func(yield func(api.Event[*corev1.Pod], error) bool) {
		added := func(name, version string) bool {
			o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(name), ResourceVersion: version}}
			return yield(api.Event[*corev1.Pod]{Type: watch.Added, Object: o, ResourceVersion: version}, nil)
		}
		if !added("a", "3") || !yield(api.Event[*corev1.Pod]{Type: watch.Bookmark, ResourceVersion: "10", InitialEventsEnd: true}, nil) {
			return
		}
		<-time.After(77 * time.Second)
		if !added("b", "11") {
			return
		}
		<-time.After(10 * time.Second)
		if !added("c", "12") {
			return
		}
		<-ctx.Done()
		yield(api.Event[*corev1.Pod]{}, ctx.Err())
	}
}

// TestAnEventDuringAProbe has an encoder that is not trained. A probe beside the watch must not hold the event back.
func TestAnEventDuringAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inf := informer.New(api.ListerWatcher[*corev1.Pod](quiet{}), informer.Options[*corev1.Pod]{Hold: packed.Coded[*corev1.Pod]((&counting{}).train)})
		fixture.Start(t, inf.Run)
		fixture.Pass(78 * time.Second)
		require.Equal(t, 2, inf.Snapshot().Len())
		fixture.Pass(10 * time.Second)
		require.Equal(t, 3, inf.Snapshot().Len())
		require.Equal(t, 1, inf.Status().Reflector.Counters.Probes)
	})
}
