package recording_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// cached is what an informer had cached: the version of each object.
type cached struct {
	version string
	objects map[api.Key]string
}

func cachedBy(i *informer.Informer[*corev1.Pod]) cached {
	s := i.Snapshot()
	out := cached{s.ResourceVersion(), map[api.Key]string{}}
	for key, pod := range s.All() {
		out.objects[key] = pod.ResourceVersion
	}
	return out
}

// caches records a minute of a server whose watches break, and returns the cache after each change.
func caches(t *testing.T, seed uint64) (file *bytes.Buffer, all []cached) {
	file = record(t, testserver.Options{ImmediateDeletion: true}, recording.Options{}, func(r *rig) {
		random := rand.New(rand.NewPCG(seed, 3))
		for range 10 {
			r.change(random)
		}
		i := follow(r, pods, informer.Options[*corev1.Pod]{})
		for range 40 {
			all = append(all, cachedBy(i))
			pause(time.Duration(random.IntN(3000)+1) * time.Millisecond)
			r.change(random)
			if random.IntN(8) == 0 {
				r.Server.Inject(faults.Fault{Effect: faults.Compact{}})
				r.Server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
			}
			synctest.Wait()
		}
		pause(10 * time.Second)
		all = append(all, cachedBy(i))
	})
	return file, all
}

// TestASteppedSourceHasTheCacheOfEachVersion moves a source from version to version. The informer that reads it always
// has the cache that production had at this version, whether it runs from the beginning or starts later.
func TestASteppedSourceHasTheCacheOfEachVersion(t *testing.T) {
	for seed := range uint64(3) {
		file, all := caches(t, seed)
		timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), opened(t, file), nil))(t)
		synctest.Test(t, func(t *testing.T) {
			source := recording.NewSteppedSource(timeline, pods, "")
			start := func() *informer.Informer[*corev1.Pod] {
				i := informer.New(source, informer.Options[*corev1.Pod]{})
				fixture.Start(t, i.Run)
				return i
			}
			first := start()
			var second *informer.Informer[*corev1.Pod]
			for n, want := range all {
				require.NoError(t, source.Advance(want.version))
				if n == len(all)/2 {
					second = start()
				}
				synctest.Wait()
				require.Equal(t, want, cachedBy(first))
				if second != nil {
					require.Equal(t, want, cachedBy(second))
				}
			}
			<-time.After(time.Hour) // watches time out and begin again
			require.Equal(t, all[len(all)-1], cachedBy(first))
		})
		require.Greater(t, len(slices.Compact(versionsOf(all))), 20)
	}
}

func versionsOf(all []cached) (versions []string) {
	for _, c := range all {
		versions = append(versions, c.version)
	}
	return versions
}

// TestASteppedSourceRefuses names what a source cannot do.
func TestASteppedSourceRefuses(t *testing.T) {
	file, all := caches(t, 1)
	timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), opened(t, file), nil))(t)
	synctest.Test(t, func(t *testing.T) {
		source := recording.NewSteppedSource(timeline, pods, "default")
		require.NoError(t, source.Advance(all[9].version))
		require.NoError(t, source.Advance(all[9].version))
		require.EqualError(t, source.Advance("2"), "recording: pods cannot go back from version "+all[9].version+" to 2")
		require.ErrorContains(t, source.Advance("999999"), "recording: pods cannot advance to version 999999: the recording ends with version ")
		require.ErrorContains(t, source.Advance("x"), `to "x": they have no order`)
		require.Equal(t, "default", source.Collection().Namespace)
		o := api.Options[*corev1.Pod]{}
		o.FieldSelector = "a=b"
		_, err := source.List(t.Context(), o, nil)
		require.EqualError(t, err, "list pods: recording: a source has no selectors; it has what was recorded")
	})
}
