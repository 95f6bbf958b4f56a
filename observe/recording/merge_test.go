package recording_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/testserver"
)

// follower is an informer of pods that the test can end.
type follower struct {
	whole, all bool // it has whole objects; it has all of them
	versions   func() map[api.Key]string
	end        func()
}

func cachedVersions[T api.Object](i *informer.Informer[T]) map[api.Key]string {
	versions := map[api.Key]string{}
	for key, o := range i.Snapshot().All() {
		versions[key] = o.GetResourceVersion()
	}
	return versions
}

// followPods starts an informer of whole pods or of their metadata, with a selector unless that is empty.
func (r *rig) followPods(whole bool, namespace string, selector api.Selector) follower {
	f := follower{whole: whole, all: selector.Labels == "" && namespace == ""}
	if whole {
		o := informer.Options[*corev1.Pod]{Selector: selector}
		i := informer.New(apiclient.NewTyped[*corev1.Pod](r.client, pods, namespace), o)
		f.end = r.Start(i.Run)
		f.versions = func() map[api.Key]string { return cachedVersions(i) }
	} else {
		o := informer.Options[*metav1.PartialObjectMetadata]{Selector: selector}
		i := informer.New(apiclient.NewPartial[*metav1.PartialObjectMetadata](r.client, pods, namespace), o)
		f.end = r.Start(i.Run)
		f.versions = func() map[api.Key]string { return cachedVersions(i) }
	}
	synctest.Wait()
	return f
}

// expectation is what informers had cached at a time.
type expectation struct {
	at       time.Time
	versions map[api.Key]string
	whole    map[api.Key]bool
	complete bool // an informer had all objects
}

func expect(running []follower) expectation {
	e := expectation{time.Now(), map[api.Key]string{}, map[api.Key]bool{}, false}
	for _, f := range running {
		e.complete = e.complete || f.all
		for key, version := range f.versions() {
			e.versions[key] = version
			e.whole[key] = e.whole[key] || f.whole
		}
	}
	return e
}

// TestTimelineOfSeveralInformers records informers of the same resource with different selectors and namespaces, some
// of them only of metadata. They begin and end at random. At every moment, the timeline has what the running ones had
// cached, and whole objects where one of them had whole objects.
func TestTimelineOfSeveralInformers(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			var expected []expectation
			file := record(t, testserver.Options{ImmediateDeletion: true, NoWatchList: seed%2 == 0}, recording.Options{JSON: seed%3 == 0}, func(r *rig) {
				var running []follower
				for range 60 {
					pause(time.Millisecond) // after the last expectation
					switch n := random.IntN(8); {
					case n == 0 && len(running) < 4:
						selector := []api.Selector{{}, {}, {Labels: "even=true"}}[random.IntN(3)]
						running = append(running, r.followPods(random.IntN(2) == 0, []string{"", "default"}[random.IntN(2)], selector))
					case n == 1 && len(running) > 0:
						last := len(running) - 1
						i := random.IntN(len(running))
						running[i].end()
						running[i], running = running[last], running[:last]
					default:
						r.changeLabelled(random)
					}
					pause(2 * time.Minute)
					synctest.Wait()
					expected = append(expected, expect(running))
				}
			})
			timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), opened(t, file), nil))(t)
			require.Empty(t, timeline.Notes())
			resource := pods
			if all := timeline.Resources(); len(all) > 0 {
				resource = all[0] // if all informers were of metadata, the kind is unknown
			}
			for _, e := range expected {
				got := map[api.Key]string{}
				for _, c := range timeline.At(resource, e.at) {
					if e.versions[c.Key] == "" && !e.complete {
						continue // only an informer that has ended had it
					}
					got[c.Key] = c.ResourceVersion
					o := must.Get(c.Object())(t)
					require.True(t, !e.whole[c.Key] || len(o.Spec.Containers) == 1, "%v has only metadata at %v", c.Key, e.at)
				}
				require.Equal(t, e.versions, got, "at %v", e.at)
			}
			requireLegal(t, timeline)
		})
	}
}

// changeLabelled makes a random change to pods in two namespaces. Labels change, so objects enter and leave selectors.
func (r *rig) changeLabelled(random *rand.Rand) {
	key := api.Key{Namespace: []string{"default", "other"}[random.IntN(2)], Name: fmt.Sprintf("pod-%d", random.IntN(4))}
	labels := map[string]string{"even": fmt.Sprint(random.IntN(2) == 0)}
	_, err := r.Server.Get(pods, key)
	switch {
	case err != nil:
		_, err = r.Server.Create(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		})
	case random.IntN(3) == 0:
		err = r.Server.Delete(pods, key)
	default:
		_, err = r.Server.Edit(pods, key, func(u *unstructured.Unstructured) { u.SetLabels(labels) })
	}
	require.NoError(r, err)
}

// TestTablesAreNotRecorded asks for a table. Its cells may have values of any field.
func TestTablesAreNotRecorded(t *testing.T) {
	file := record(t, testserver.Options{}, recording.Options{}, func(r *rig) {
		r.change(rand.New(rand.NewPCG(1, 1)))
		req := must.Get(http.NewRequest(http.MethodGet, r.Server.URL()+"/api/v1/pods", nil))(r)
		req.Header = http.Header{"Accept": {"application/json;as=Table;g=meta.k8s.io;v=v1,application/json"}, "Authorization": {"Bearer " + token}}
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.Server.Dial(ctx) }}
		defer transport.CloseIdleConnections()
		resp := must.Get(r.recorder.Wrap(transport).RoundTrip(req))(r)
		body := must.Get(io.ReadAll(resp.Body))(r)
		require.NoError(r, resp.Body.Close())
		require.Contains(r, string(body), "columnDefinitions")
	})
	require.NotContains(t, payloads(file), "columnDefinitions")
	timeline := must.Get(recording.Load[*unstructured.Unstructured](t.Context(), opened(t, file), nil))(t)
	require.Equal(t, []string{"a request for pods has no data: a table is not recorded"}, timeline.Notes())
}
