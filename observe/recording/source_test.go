package recording_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// production records a minute of a server whose watches break.
func production(t *testing.T, seed uint64) *bytes.Buffer {
	return record(t, testserver.Options{ImmediateDeletion: true}, recording.Options{}, func(r *rig) {
		random := rand.New(rand.NewPCG(seed, 2))
		for range 10 {
			r.change(random)
		}
		follow(r, pods, informer.Options[*corev1.Pod]{})
		for range 40 {
			pause(time.Duration(random.IntN(3000)+1) * time.Millisecond)
			r.change(random)
			if random.IntN(8) == 0 {
				r.Server.Inject(faults.Fault{Effect: faults.Compact{}})
				r.Server.Inject(faults.Fault{Effect: faults.Disconnect{Abrupt: true}})
			}
		}
		pause(10 * time.Second)
	})
}

// labeler is a reconciler as the examples have them: it reads a cache, decides, and writes. It fails sometimes, so that
// keys are tried again. It notes all that it does.
type labeler struct {
	pods  cache.Reader[*corev1.Pod]
	begin time.Time

	mu    sync.Mutex // guards the fields below
	log   []string
	tries map[api.Key]int
}

func (l *labeler) Reconcile(ctx context.Context, key api.Key) (controller.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var causes []string
	for _, c := range controller.Causes(ctx) {
		causes = append(causes, fmt.Sprintf("%s of %s at version %s", c.Event, c.Source, c.Version))
	}
	pod, found := l.pods.Get(key)
	switch l.tries[key]++; {
	case !found:
		l.note(key, causes, "delete the volume of "+key.Name)
	case l.tries[key]%3 == 0:
		l.note(key, causes, "fail")
		return controller.Result{}, errors.New("a conflict")
	case strings.HasSuffix(pod.Labels["n"], "7"):
		l.note(key, causes, "look again")
		return controller.Result{RequeueAfter: 5 * time.Second}, nil
	default:
		l.note(key, causes, "write "+pod.ResourceVersion+" "+pod.Labels["n"])
	}
	return controller.Result{}, nil
}

func (l *labeler) note(key api.Key, causes []string, write string) {
	l.log = append(l.log, fmt.Sprintf("%v %v because of %v: %s", time.Since(l.begin).Round(time.Second), key, causes, write))
}

// rerun runs the reconciler against a recording in a bubble, and returns what it did, and its last cache.
func rerun(t *testing.T, file *bytes.Buffer) (log []string, versions map[api.Key]string) {
	synctest.Test(t, func(t *testing.T) {
		timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), opened(t, file), nil))(t)
		source := recording.NewSource(timeline, pods, "")
		i := informer.New(source, informer.Options[*corev1.Pod]{})
		l := &labeler{pods: i.Cache(), begin: time.Now(), tries: map[api.Key]int{}}
		c := controller.New("labeler", l, controller.Options{Workers: 1})
		c.Watch(controller.For(i))
		stop := fixture.Start(t, fixture.All(i.Run, c.Run))
		pause(time.Until(source.End()) + 20*time.Minute) // the watch times out and begins again
		versions = map[api.Key]string{}
		for key, o := range i.Snapshot().All() {
			versions[key] = o.ResourceVersion
		}
		stop()
		log = l.log
	})
	return log, versions
}

// TestAReconcilerRunsAgainstARecording runs a reconciler several times against what a server sent while its watches
// broke. It gets the same keys with the same causes at the same times, and writes the same. Its cache ends with the
// state of the recording.
func TestAReconcilerRunsAgainstARecording(t *testing.T) {
	for seed := range uint64(3) {
		file := production(t, seed)
		timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), opened(t, file), nil))(t)
		_, last := timeline.Span()
		want := map[api.Key]string{}
		for _, c := range timeline.At(pods, last) {
			want[c.Key] = c.ResourceVersion
		}
		first, versions := rerun(t, file)
		require.Equal(t, want, versions)
		require.Greater(t, len(first), 30)
		require.Contains(t, strings.Join(first, "\n"), "because of [update of pods at version ")
		require.Contains(t, strings.Join(first, "\n"), "fail")
		for range 3 {
			again, _ := rerun(t, file)
			require.Equal(t, first, again)
		}
	}
}

// TestASourceDropsManagedFields lists and watches with and without them.
func TestASourceDropsManagedFields(t *testing.T) {
	managed := func(manager string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			}},
		}}
	}
	file := record(t, testserver.Options{}, recording.Options{}, func(r *rig) {
		r.Create(pods, managed("first"))
		follow(r, pods, informer.Options[*corev1.Pod]{Memory: reflector.Memory{KeepManagedFields: true}})
		pause(time.Second)
		r.Update(pods, managed("second"))
		pause(time.Second)
	})
	timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), opened(t, file), nil))(t)
	for _, drop := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			source := recording.NewSource(timeline, pods, "")
			o := api.Options[*corev1.Pod]{DropManagedFields: drop}
			seen := 0
			meta, err := source.List(t.Context(), o, func(p *corev1.Pod) error {
				require.Equal(t, drop, len(p.ManagedFields) == 0)
				seen++
				return nil
			})
			require.NoError(t, err)
			o.ResourceVersion = meta.ResourceVersion
			for e, err := range source.Watch(t.Context(), o) {
				require.NoError(t, err)
				require.Equal(t, drop, len(e.Object.ManagedFields) == 0)
				seen++
				break
			}
			require.Equal(t, 2, seen)
		})
	}
}

// TestASourceHasNoSelectors refuses what a recording cannot answer.
func TestASourceHasNoSelectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := recording.NewSource(&recording.Timeline[*corev1.Pod]{}, pods, "default")
		o := api.Options[*corev1.Pod]{}
		o.LabelSelector = "a=b"
		_, err := source.List(t.Context(), o, nil)
		require.EqualError(t, err, "list pods: recording: a source has no selectors; it has what was recorded")
		for _, err := range source.Watch(t.Context(), o) {
			require.ErrorContains(t, err, "watch pods: recording: a source has no selectors")
		}
		seconds, opened := int64(60), 0
		o = api.Options[*corev1.Pod]{OnOpen: func() { opened++ }}
		o.TimeoutSeconds = &seconds
		begin := time.Now()
		for range source.Watch(t.Context(), o) {
			t.Fatal("an event of an empty recording")
		}
		require.Equal(t, time.Minute, time.Since(begin))
		require.Equal(t, 1, opened)
		yes := true
		o.SendInitialEvents = &yes
		for _, err := range source.Watch(t.Context(), o) {
			require.ErrorIs(t, err, api.ErrNoWatchList)
		}
		require.Equal(t, "default", source.Collection().Namespace)
		require.Equal(t, source.End(), begin)
	})
}
