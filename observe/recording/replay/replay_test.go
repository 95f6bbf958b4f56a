package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/observe/recording"
	"github.com/leatproject/leat/observe/recording/replay"
	"github.com/leatproject/leat/testserver"
)

var (
	maps    = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
	widgets = api.Resource{Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true}
)

// client returns a client of a server in memory, through a recorder if there is one.
func client(t *testing.T, s *testserver.Server, r *recording.Recorder) *apiclient.Client {
	cfg := apiclient.Config{Host: s.URL(), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }}
	if r != nil {
		cfg.WrapTransport = r.Wrap
	}
	return must.Get(apiclient.New(cfg))(t)
}

// seen is what an informer's handler got.
type seen struct {
	mu  sync.Mutex
	all []string
}

// follow runs an informer of a resource. begin is the time that the handler counts from.
func follow(ctx context.Context, running *sync.WaitGroup, c *apiclient.Client, r api.Resource, s *seen, begin time.Time) {
	i := informer.New(apiclient.NewTyped[*unstructured.Unstructured](c, r, ""), informer.Options[*unstructured.Unstructured]{})
	_, err := i.Subscribe(func(n api.Change[*unstructured.Unstructured]) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n.InitialList {
			begin = time.Now()
		}
		s.all = append(s.all, fmt.Sprintf("%v %v %v %v %v", time.Since(begin).Round(time.Millisecond), n.Type, api.KeyOf(n.Object), n.Object.GetUID(), n.Object.GetResourceVersion()))
	}, informer.HandlerOptions{})
	if err != nil {
		panic(err)
	}
	running.Go(func() { _ = i.Run(ctx) })
	synctest.Wait()
}

// TestAClientOfAReplaySeesTheRecording records two resources and replays them. An informer of the replay gets the same
// changes with the same UIDs, versions and pauses as the recorded one, and cannot write.
func TestAClientOfAReplaySeesTheRecording(t *testing.T) {
	var file bytes.Buffer
	original := map[string]*seen{"configmaps": {}, "widgets.example.com": {}}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := testserver.New(testserver.Options{})
		server.Register(widgets)
		r := must.Get(recording.New(&file, recording.Options{}))(t)
		var running, written sync.WaitGroup
		stop, end := context.WithCancel(t.Context())
		written.Go(func() { require.NoError(t, r.Run(stop)) })
		running.Go(func() { _ = server.Run(ctx) })
		set := func(res api.Resource, name string, n int) {
			o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"n": fmt.Sprint(n)}}}}
			if _, err := server.Get(res, api.Key{Namespace: "default", Name: name}); err != nil {
				must.Get(server.Create(res, o))(t)
				return
			}
			must.Get(server.Update(res, o))(t)
		}
		set(maps, "first", 0)
		set(widgets, "first", 0)
		c := client(t, server, r)
		begin := time.Now()
		follow(ctx, &running, c, maps, original["configmaps"], begin)
		follow(ctx, &running, c, widgets, original["widgets.example.com"], begin)
		for n := range 20 {
			<-time.After(time.Duration(n) * 100 * time.Millisecond)
			set(maps, fmt.Sprint("m", n%3), n)
			set(widgets, fmt.Sprint("w", n%4), n)
			if n%5 == 4 {
				require.NoError(t, server.Delete(maps, api.Key{Namespace: "default", Name: fmt.Sprint("m", n%3)}))
			}
		}
		<-time.After(time.Second)
		cancel()
		running.Wait()
		end()
		written.Wait()
	})
	for _, speed := range []float64{1, 10} {
		again := map[string]*seen{"configmaps": {}, "widgets.example.com": {}}
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reader := must.Get(recording.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len())))(t)
			timeline := must.Get(recording.Load[*unstructured.Unstructured](t.Context(), reader, nil))(t)
			server := testserver.New(replay.Options())
			player := must.Get(replay.New(server, timeline))(t)
			require.Equal(t, len(timeline.Changes())-2, player.Left())
			var running sync.WaitGroup
			running.Go(func() { _ = server.Run(ctx) })
			c := client(t, server, nil)
			begin := time.Now()
			follow(ctx, &running, c, maps, again["configmaps"], begin)
			follow(ctx, &running, c, widgets, again["widgets.example.com"], begin)
			played := 0
			require.NoError(t, player.Run(ctx, speed, func(replay.Change) { played++ }))
			require.Equal(t, len(timeline.Changes())-2, played)
			took = time.Since(begin)
			synctest.Wait()
			_, err := apiclient.NewTyped[*corev1.ConfigMap](c, maps, "default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			cancel()
			running.Wait()
			require.ErrorIs(t, ended(player, timeline), context.Canceled)
		})
		for name := range original {
			if speed == 1 {
				require.Equal(t, original[name].all, again[name].all)
			} else {
				require.Len(t, again[name].all, len(original[name].all))
			}
		}
		require.InDelta(t, 19*float64(time.Second)/speed, took.Seconds()*float64(time.Second), 0.1*float64(time.Second))
	}
}

// TestASlowReplay has pauses that are longer than a time.Duration, and speeds that are not above 0.
func TestASlowReplay(t *testing.T) {
	var file bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		r := must.Get(recording.New(&file, recording.Options{}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		server := testserver.New(testserver.Options{})
		var running, written sync.WaitGroup
		stop, end := context.WithCancel(t.Context())
		written.Go(func() { require.NoError(t, r.Run(stop)) })
		running.Go(func() { _ = server.Run(ctx) })
		follow(ctx, &running, client(t, server, r), maps, &seen{}, time.Now())
		for n := range 3 {
			o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprint("m", n), "namespace": "default"}}}
			must.Get(server.Create(maps, o))(t)
			<-time.After(time.Second)
		}
		cancel()
		running.Wait()
		end()
		written.Wait()
	})
	reader := must.Get(recording.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len())))(t)
	timeline := must.Get(recording.Load[*unstructured.Unstructured](t.Context(), reader, nil))(t)
	for speed, want := range map[float64]int{1e-13: 1, 5e-324: 1, 1: 2, math.Inf(1): 3} {
		synctest.Test(t, func(t *testing.T) {
			player := must.Get(replay.New(testserver.New(replay.Options()), timeline))(t)
			require.Equal(t, 3, player.Left())
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			played := 0
			err := player.Run(ctx, speed, func(replay.Change) { played++ })
			require.Equal(t, want, played, speed)
			if want < 3 {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				require.NoError(t, err)
			}
		})
	}
	player := must.Get(replay.New(testserver.New(replay.Options()), timeline))(t)
	for _, speed := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		require.EqualError(t, player.Run(t.Context(), speed, nil), fmt.Sprintf("replay: the speed %v is not above 0", speed))
	}
}

// ended runs a new player with a context that has ended.
func ended(_ *replay.Player, timeline *replay.Timeline) error {
	player, err := replay.New(testserver.New(replay.Options()), timeline)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return player.Run(ctx, 1e-9, nil)
}
