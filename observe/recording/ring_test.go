package recording_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/listerwatchertest"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
)

// withRing runs f in a bubble with a ring, and an informer of pods whose client is recorded by it.
func withRing(t *testing.T, o recording.RingOptions, so testserver.Options, f func(*rig, *recording.Ring, *informer.Informer[*corev1.Pod])) {
	t.Helper()
	for _, protobuf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := o
			o.Dir = t.TempDir()
			ring := must.Get(recording.NewRing(o))(t)
			r := &rig{Fixture: fixture.New(t, so)}
			end := r.Start(ring.Run)
			r.client = r.Connect(func(next http.RoundTripper) http.RoundTripper {
				if protobuf {
					next = listerwatchertest.Protobuf(next)
				}
				return ring.Wrap(next)
			})
			r.Create(pods, &corev1.Pod{ObjectMeta: fixture.Meta("default", "quiet")})
			io := informer.Options[*corev1.Pod]{}
			io.Tuning.PageSize = 3
			f(r, ring, follow(r, pods, io))
			r.endInformers()
			end()
			left := must.Get(filepath.Glob(filepath.Join(o.Dir, "segment*")))(t)
			require.Empty(t, left)
			require.EqualError(t, must.Err(ring.Dump()), "recording: dump: the ring has ended")
		})
	}
}

// TestARingKeepsTheLastMinutes changes pods for most of an hour, while watches break and lists come again. Each dump
// has what the informer had cached at every moment of the last five minutes, also a pod that never changed. The
// segments stay small.
func TestARingKeepsTheLastMinutes(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 3))
		withRing(t, recording.RingOptions{MaxAge: 5 * time.Minute}, testserver.Options{ImmediateDeletion: true, History: 5, NoWatchList: seed%2 == 0}, func(r *rig, ring *recording.Ring, i *informer.Informer[*corev1.Pod]) {
			var moments []moment
			for n := range 200 {
				pause(time.Duration(random.IntN(30_000)+1) * time.Millisecond)
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
				if n%50 == 49 {
					requireDump(r, ring, moments)
				}
			}
		})
	}
}

// requireDump requires that a dump has the moments of the last minutes, and not those of long ago.
func requireDump(r *rig, ring *recording.Ring, moments []moment) {
	path := must.Get(ring.Dump())(r)
	file := must.Get(recording.Open(path))(r)
	defer file.Close()
	require.True(r, file.Complete())
	require.Empty(r, file.Problems())
	timeline := must.Get(recording.Load[*corev1.Pod](r.Context(), file.Reader, nil))(r)
	require.Empty(r, timeline.Notes())
	checked := 0
	for _, m := range moments {
		if time.Since(m.at) > 5*time.Minute {
			continue
		}
		checked++
		got := map[api.Key]string{}
		for _, c := range timeline.At(timeline.Resources()[0], m.at) {
			got[c.Key] = c.ResourceVersion
			o := must.Get(c.Object())(r)
			require.Equal(r, c.Key.Name, o.Name)
			require.Equal(r, "Pod", o.Kind)
		}
		require.Equal(r, m.versions, got, "%v ago", time.Since(m.at))
	}
	require.Greater(r, checked, 5)
	first, last := timeline.Span()
	require.Less(r, last.Sub(first), 10*time.Minute)
}

// TestARingIsBounded writes more than the ring may hold.
func TestARingIsBounded(t *testing.T) {
	withRing(t, recording.RingOptions{MaxBytes: 30_000, MaxDumps: 2}, testserver.Options{ImmediateDeletion: true}, func(r *rig, ring *recording.Ring, i *informer.Informer[*corev1.Pod]) {
		random := rand.New(rand.NewPCG(1, 1))
		var paths []string
		for n := range 1500 {
			r.change(random)
			pause(10 * time.Millisecond)
			if n%250 == 249 {
				pause(time.Second)
				path := must.Get(ring.Dump())(t)
				paths = append(paths, path)
				require.Less(t, folder(t, filepath.Dir(path), "segment-0"), int64(40_000))
			}
		}
		require.Greater(t, ring.Stats().Written, uint64(45_000))
		left := must.Get(filepath.Glob(filepath.Join(filepath.Dir(paths[0]), "dump-*")))(t)
		require.Equal(t, paths[4:], left)
	})
}

// folder returns the size of the files with a prefix.
func folder(t *testing.T, dir, prefix string) (size int64) {
	files := must.Get(os.ReadDir(dir))(t)
	for _, f := range files {
		info := must.Get(f.Info())(t)
		if strings.HasPrefix(f.Name(), prefix) {
			size += info.Size()
		}
	}
	return size
}

// TestWhatMakesADump makes dumps by a panic, a health check and a signal.
func TestWhatMakesADump(t *testing.T) {
	withRing(t, recording.RingOptions{}, testserver.Options{}, func(r *rig, ring *recording.Ring, _ *informer.Informer[*corev1.Pod]) {
		require.PanicsWithValue(t, "a bug", func() {
			defer ring.DumpOnPanic()
			panic("a bug")
		})
		var mu sync.Mutex
		var paths []string
		dumped := func(path string, err error) {
			mu.Lock()
			defer mu.Unlock()
			require.NoError(t, err)
			paths = append(paths, path)
		}
		var health error
		check := ring.DumpOnFailure(func(context.Context) error { return health }, dumped)
		for i, now := range []error{nil, errors.New("sick"), errors.New("sick"), nil, errors.New("sick")} {
			pause(time.Second)
			health = now
			require.Equal(t, now, check(r.Context()))
			require.Len(t, paths, []int{0, 1, 1, 1, 2}[i])
		}
		signals := make(chan os.Signal, 1)
		ctx, cancel := context.WithCancel(r.Context())
		ended := make(chan error, 1)
		go func() { ended <- ring.DumpOn(ctx, signals, dumped) }()
		signals <- os.Interrupt
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Len(t, paths, 3)
		left := must.Get(filepath.Glob(filepath.Join(filepath.Dir(paths[0]), "dump-*")))(t)
		require.Len(t, left, 4)
	})
}

// TestARingOfAKilledProcess has the segments of a ring that did not end. The next ring makes a dump of them.
func TestARingOfAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	copied := filepath.Join(t.TempDir(), "copied")
	synctest.Test(t, func(t *testing.T) {
		ring := must.Get(recording.NewRing(recording.RingOptions{Dir: dir}))(t)
		r := &rig{Fixture: fixture.New(t, testserver.Options{})}
		r.Start(ring.Run)
		r.client = r.Connect(ring.Wrap)
		follow(r, pods, informer.Options[*corev1.Pod]{})
		for n := range 5 {
			r.Create(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", n), Namespace: "default"}})
			pause(3 * time.Minute)
		}
		require.NoError(t, os.CopyFS(copied, os.DirFS(dir))) // as a kill would leave it
	})
	ring := must.Get(recording.NewRing(recording.RingOptions{Dir: copied}))(t)
	dumps := must.Get(filepath.Glob(filepath.Join(copied, "dump-*-killed-*.rec")))(t)
	require.Len(t, dumps, 1)
	file := must.Get(recording.Open(dumps[0]))(t)
	defer file.Close()
	timeline := must.Get(recording.Load[*corev1.Pod](t.Context(), file.Reader, nil))(t)
	changes := timeline.Changes()
	require.NotEmpty(t, changes)
	require.Equal(t, "pod-4", changes[len(changes)-1].Key.Name)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, ring.Run(ctx))
}

// TestWrongRings refuses options that cannot work.
func TestWrongRings(t *testing.T) {
	require.EqualError(t, must.Err(recording.NewRing(recording.RingOptions{})), "recording: a ring needs a Dir, and no option below 0")
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorContains(t, must.Err(recording.NewRing(recording.RingOptions{Dir: path})), "recording: ")
}
