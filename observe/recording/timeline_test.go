package recording_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// moment is what two informers had cached at a time.
type moment struct {
	at       time.Time
	versions map[api.Key]string
}

// change makes a random change on the server.
func (r *rig) change(random *rand.Rand) {
	key := api.Key{Namespace: "default", Name: fmt.Sprintf("pod-%d", random.IntN(8))}
	_, err := r.Server.Get(pods, key)
	switch {
	case err != nil:
		_, err = r.Server.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}})
	case random.IntN(3) == 0:
		err = r.Server.Delete(pods, key)
	default:
		_, err = r.Server.Edit(pods, key, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"n": fmt.Sprint(random.IntN(1000))})
		})
	}
	require.NoError(r, err)
}

// TestTimelineAgreesWithTheInformer records an informer while watches break, the history is compacted and lists come in
// pages. At every moment, the timeline has what the informer had cached.
func TestTimelineAgreesWithTheInformer(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var moments []moment
			file := record(t, testserver.Options{ImmediateDeletion: true, History: 5, NoWatchList: seed%2 == 0}, recording.Options{}, func(r *rig) {
				for range 10 {
					r.change(random)
				}
				o := informer.Options[*corev1.Pod]{}
				o.Tuning.PageSize = 3
				i := follow(r, pods, o)
				r.Server.Inject(faults.Fault{Match: faults.Match{Verbs: []string{"watch"}}, Probability: 0.3, Seed: seed, Effect: faults.ShortWatch{For: 7 * time.Second, Abrupt: seed%3 == 0}})
				for range 60 {
					pause(time.Duration(random.IntN(5000)+1) * time.Millisecond)
					r.change(random)
					if random.IntN(10) == 0 {
						r.Server.Inject(faults.Fault{Effect: faults.Compact{}})
						r.Server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
					}
					pause(time.Millisecond)
					synctest.Wait()
					versions := map[api.Key]string{}
					for key, o := range i.Snapshot().All() {
						versions[key] = o.ResourceVersion
					}
					moments = append(moments, moment{time.Now(), versions})
				}
			})
			timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), opened(t, file), nil))(t)
			require.Empty(t, timeline.Notes())
			require.Equal(t, []api.Resource{pods}, timeline.Resources())
			for _, m := range moments {
				got := map[api.Key]string{}
				for _, c := range timeline.At(pods, m.at) {
					got[c.Key] = c.ResourceVersion
					o := must.Get(c.Object())(t)
					require.Equal(t, c.Key.Name, o.Name)
					require.Equal(t, "Pod", o.Kind)
				}
				require.Equal(t, m.versions, got, "at %v", m.at)
			}
			requireLegal(t, timeline)
		})
	}
}

// requireLegal requires that each object is added, modified and deleted in this order.
func requireLegal(t *testing.T, timeline *recording.Timeline[*corev1.Pod]) {
	t.Helper()
	last := map[api.Key]watch.EventType{}
	at := time.Time{}
	for _, c := range timeline.Changes() {
		require.False(t, c.Time.Before(at))
		at = c.Time
		known := last[c.Key] == watch.Added || last[c.Key] == watch.Modified
		require.Equal(t, c.Type != watch.Added, known, "%v %v", c.Type, c.Key)
		_, ok, err := c.Before()
		require.NoError(t, err)
		require.Equal(t, c.Type == watch.Modified, ok)
		last[c.Key] = c.Type
	}
}

// TestTimelineOfADamagedFile cuts a recording everywhere. The timeline has the beginning of the changes.
func TestTimelineOfADamagedFile(t *testing.T) {
	file := record(t, testserver.Options{}, recording.Options{}, func(r *rig) {
		random := rand.New(rand.NewPCG(1, 1))
		follow(r, pods, informer.Options[*corev1.Pod]{})
		for range 10 {
			r.change(random)
			pause(time.Second)
		}
	})
	whole := must.Get(recording.Load[*unstructured.Unstructured](t.Context(), opened(t, file), nil))(t)
	require.Len(t, whole.Changes(), 10)
	for n := 100; n < file.Len(); n += 7 {
		r := must.Get(recording.NewReader(bytes.NewReader(file.Bytes()), int64(n)))(t)
		part := must.Get(recording.Load[*unstructured.Unstructured](t.Context(), r, nil))(t)
		for i, c := range part.Changes() {
			require.Equal(t, whole.Changes()[i].ResourceVersion, c.ResourceVersion)
		}
	}
}

// TestTimelineOfSelectedStreams reads one of two resources. An empty collection has a kind too.
func TestTimelineOfSelectedStreams(t *testing.T) {
	file := record(t, testserver.Options{}, recording.Options{}, func(r *rig) {
		follow(r, pods, informer.Options[*corev1.Pod]{})
		follow(r, maps, informer.Options[*corev1.ConfigMap]{})
	})
	timeline, err := recording.Load[*unstructured.Unstructured](t.Context(), opened(t, file), func(s *recording.Stream) bool { return s.Plural == "configmaps" })
	require.NoError(t, err)
	require.Len(t, timeline.Resources(), 1)
	require.Equal(t, "ConfigMap", timeline.Resources()[0].Kind)
	require.Empty(t, timeline.Changes())
}

// TestAProbeIsNoScope breaks a watch, so that the reflector asks for the version of the server beside the next one.
func TestAProbeIsNoScope(t *testing.T) {
	probes := 0
	file := record(t, testserver.Options{}, recording.Options{}, func(r *rig) {
		i := follow(r, pods, informer.Options[*corev1.Pod]{})
		r.Server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
		pause(time.Minute)
		probes = int(i.Status().Reflector.Counters.Probes)
	})
	require.NotZero(t, probes)
	timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), opened(t, file), nil))(t)
	require.Len(t, timeline.Scopes(), 1)
	require.Empty(t, timeline.Scopes()[0].FieldSelector)
}
