package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/reflector"
)

// TestTenThousandObjects has one informer that receives 10,000 objects one by one, and others that list them, while the
// objects change.
func TestTenThousandObjects(t *testing.T) {
	const objects, changes = 10_000, 4_000
	client := newClient(t, adminConfig())
	c := newCollection(t, configMaps, configMapBody)
	lw := apiclient.NewTyped[*corev1.ConfigMap](client, configMaps, c.namespace)
	first := follow(t, "from the first object", c, lw, informer.Options[*corev1.ConfigMap]{})
	first.awaitSynced(t)

	began := time.Now()
	c.fill(t, objects, noLabels)
	t.Logf("%d objects made in %s", objects, time.Since(began))

	churning := &churner{collection: c, objects: objects, seed: 2, label: noLabels}
	ended := make(chan error, 1)
	go func() { ended <- churning.run(t.Context(), changes) }()
	streamed := follow(t, "streamed", c, lw, informer.Options[*corev1.ConfigMap]{})
	paged := follow(t, "paged", c, lw, informer.Options[*corev1.ConfigMap]{Tuning: reflector.Tuning{NoWatchList: true}})
	metadata := follow(t, "metadata", c, apiclient.NewPartial[*metav1.PartialObjectMetadata](client, configMaps, c.namespace),
		informer.Options[*metav1.PartialObjectMetadata]{})
	streamed.awaitSynced(t)
	paged.awaitSynced(t)
	metadata.awaitSynced(t)
	require.NoError(t, <-ended)

	first.agree(t)
	streamed.agree(t)
	paged.agree(t)
	metadata.agree(t)
	require.Empty(t, first.mirror.unseen(objectNames(objects)), "keys lost")
	require.Equal(t, 1, first.Status().Reflector.Counters.Lists)
	t.Logf("the first handler got %d additions, %d updates and %d deletions", first.mirror.count(api.Added),
		first.mirror.count(api.Updated), first.mirror.count(api.Deleted))
}

func objectNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = objectName(i)
	}
	return names
}

// TestPages lists from a server without a watch cache, which answers in pages.
func TestPages(t *testing.T) {
	restartWithoutWatchCache(t)
	c := newCollection(t, configMaps, configMapBody)
	c.fill(t, 250, noLabels)
	lw := apiclient.NewTyped[*corev1.ConfigMap](newClient(t, adminConfig()), configMaps, c.namespace)
	f := follow(t, "paged", c, lw, informer.Options[*corev1.ConfigMap]{Tuning: reflector.Tuning{NoWatchList: true, PageSize: 20}})
	f.awaitSynced(t)
	require.Equal(t, 250, f.Cache().Len())
	require.GreaterOrEqual(t, f.Status().Reflector.Counters.Pages, 13)
	require.NoError(t, (&churner{collection: c, objects: 250, seed: 3, label: noLabels}).run(t.Context(), 200))
	f.agree(t)
}

// restartWithoutWatchCache restarts the API server without its watch cache until the test ends.
func restartWithoutWatchCache(t *testing.T) {
	t.Helper()
	require.NoError(t, server.RestartAPIServer(t.Context(), "--watch-cache=false"))
	t.Cleanup(func() { restart(t) })
}

// restart restarts the API server with its original flags. The test's own context may have ended.
func restart(t *testing.T) {
	t.Helper()
	if err := server.KillAPIServer(); err != nil {
		require.ErrorIs(t, err, cluster.ErrNotRunning)
	}
	require.NoError(t, server.StartAPIServer(contextWithoutEnd(t)))
}

// ensureServer starts the API server if a test has ended after killing it.
func ensureServer(t *testing.T) {
	t.Helper()
	if err := server.StartAPIServer(contextWithoutEnd(t)); err != nil {
		require.ErrorIs(t, err, cluster.ErrRunning)
	}
}
