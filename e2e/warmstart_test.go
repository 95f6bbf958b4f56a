package e2e_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/scale/warmstart"
)

// requestLog notes the requests of a client.
type requestLog struct {
	http.RoundTripper
	mu   sync.Mutex // guards the field below
	seen []string
}

func (l *requestLog) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := "list"
	switch q := r.URL.Query(); {
	case q.Get("sendInitialEvents") == "true":
		kind = "watchlist"
	case q.Get("watch") != "":
		kind = "watch"
	}
	l.mu.Lock()
	l.seen = append(l.seen, kind)
	l.mu.Unlock()
	return l.RoundTripper.RoundTrip(r)
}

// TestWarmStart starts an agent four times. It lists once, and once more after the API server has lost its history.
func TestWarmStart(t *testing.T) {
	c := newCollection(t, pods, podBody)
	c.fill(t, 20, noLabels)
	path := filepath.Join(t.TempDir(), "pods")
	run := func(while func()) (requests []string) {
		t.Helper()
		log := &requestLog{}
		config := adminConfig()
		config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper {
			log.RoundTripper = rt
			return log
		}
		client := newClient(t, config)
		warm := must.Get(warmstart.New(apiclient.NewTyped[*corev1.Pod](client, pods, c.namespace),
			warmstart.Options{Path: path, Cluster: client.Host()}))(t)
		inf := informer.New(warm, informer.Options[*corev1.Pod]{})
		stop := fixture.Start(t, inf.Run)
		<-inf.Synced()
		while()
		require.NoError(t, inf.WaitFor(t.Context(), c.mark(t)))
		want := map[string]string{}
		for _, item := range c.list(t, "", "") {
			var pod metav1.PartialObjectMetadata
			require.NoError(t, json.Unmarshal(item, &pod))
			want[pod.Name] = pod.ResourceVersion
		}
		have := map[string]string{}
		for key, pod := range inf.Cache().All() {
			have[key.Name] = pod.ResourceVersion
		}
		require.Equal(t, want, have)
		stop()
		require.NoError(t, warm.Status().Stopped)
		require.NoError(t, warm.Close())
		log.mu.Lock()
		defer log.mu.Unlock()
		return log.seen
	}
	change := func(i int) {
		t.Helper()
		must.Get(c.annotate(t.Context(), objectName(i), "changed"))(t)
		require.NoError(t, c.delete(t.Context(), objectName(i+10)))
	}
	require.Equal(t, []string{"watchlist"}, run(func() { change(0) }))
	change(1) // while no agent runs
	require.Equal(t, []string{"watch"}, run(func() { change(2) }))

	change(3)
	compactWhileAway(t)
	requests := run(func() { change(4) })
	require.Equal(t, "watch", requests[0])
	require.Contains(t, requests, "list", "after a 410")
	require.Equal(t, []string{"watch"}, run(func() { change(5) }))
}
