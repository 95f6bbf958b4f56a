package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/e2e/cluster"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/reflector"
)

// TestRestoredEtcd restores etcd from a backup while informers run. The server's versions decrease, and it answers a
// watch from a future version with silence. Afterwards the informers must show exactly what the server has. In one case
// they notice the outage. In the other they see only a connection that breaks, and the next watch is accepted at once.
func TestRestoredEtcd(t *testing.T) {
	for name, flags := range map[string][]string{"with watch cache": nil, "without": {"--watch-cache=false"}} {
		t.Run("an outage, "+name, func(t *testing.T) {
			b := newRestoreBench(t, adminConfig())
			require.NoError(t, server.RestoreEtcd(t.Context(), flags...))
			b.converge(t, 30*time.Second)
		})
	}
	t.Run("behind their back", func(t *testing.T) {
		p, config := startProxy(t)
		b := newRestoreBench(t, config)
		p.Stall()
		require.NoError(t, server.RestoreEtcd(t.Context()))
		p.Cut()
		p.Resume()
		b.converge(t, 30*time.Second)
	})
}

// restoreBench is a collection with a backup that has changed since.
type restoreBench struct {
	c       *collection
	victims []restoreVictim
}

// restoreVictim is a follower of any type.
type restoreVictim interface {
	victim
	letComeBack()
	differs(t *testing.T) error
}

func newRestoreBench(t *testing.T, config apiclient.Config) *restoreBench {
	t.Helper()
	b := &restoreBench{c: newCollection(t, configMaps, configMapBody)}
	b.c.fill(t, 100, noLabels)
	resource := apiclient.NewTyped[*corev1.ConfigMap](newClient(t, config), configMaps, b.c.namespace)
	view := apiclient.NewPartial[*metav1.PartialObjectMetadata](newClient(t, config), configMaps, b.c.namespace)
	o := informer.Options[*corev1.ConfigMap]{}
	b.victims = []restoreVictim{
		follow(t, "typed", b.c, resource, o),
		follow(t, "over WebSocket", b.c, websocket.Watch(resource), o),
		follow(t, "metadata, paged", b.c, view, informer.Options[*metav1.PartialObjectMetadata]{
			Tuning: reflector.Tuning{NoWatchList: true},
		}),
	}
	for _, v := range b.victims {
		v.letComeBack()
	}
	b.agree(t)
	t.Cleanup(func() { restart(t) })
	require.NoError(t, server.BackUpEtcd(t.Context()))
	b.change(t)
	return b
}

// change deletes, changes, replaces and creates objects. The restore undoes these changes. Additional revisions without
// an object prevent the restored server from overtaking its former versions, because each start of an API server adds
// some revisions.
func (b *restoreBench) change(t *testing.T) {
	t.Helper()
	require.NoError(t, eventually(t.Context(), func() error { // the API server must find etcd again
		_, err := b.c.annotate(t.Context(), objectName(0), "changed")
		return err
	}))
	for i := range 30 {
		name := objectName(i)
		if i%3 == 0 {
			must.Get(b.c.annotate(t.Context(), name, "changed"))(t)
			continue
		}
		require.NoError(t, b.c.delete(t.Context(), name))
		if i%3 == 1 {
			must.Get(b.c.create(t.Context(), name, nil))(t)
		}
	}
	for i := range 20 {
		must.Get(b.c.create(t.Context(), fmt.Sprintf("new-%d", i), nil))(t)
	}
	for range 2000 {
		must.Get(server.Advance(t.Context()))(t)
	}
	b.agree(t)
}

func (b *restoreBench) agree(t *testing.T) {
	t.Helper()
	for _, v := range b.victims {
		v.agree(t)
	}
}

// converge waits until each informer shows what the server has, at most for limit, and requires that it follows later
// changes.
func (b *restoreBench) converge(t *testing.T, limit time.Duration) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for _, v := range b.victims {
		require.NoError(t, eventually(ctx, func() error { return v.differs(t) }), "%s", v.Status())
		t.Logf("after %s: %+v", time.Since(began).Round(time.Millisecond), v.Status().Reflector.Counters)
		require.NotZero(t, v.Status().Reflector.Counters.Probes)
		require.NotZero(t, v.Status().Reflector.Counters.Backwards)
	}
	b.agree(t)
}

// TestWatchFromTheFuture checks the reason for TestRestoredEtcd. The API server accepts a watch from a version that it
// has not reached, sends nothing, not even a bookmark, and ends it normally. A list fails with the message that the
// version is too large.
func TestWatchFromTheFuture(t *testing.T) {
	for name, flags := range map[string][]string{"with watch cache": nil, "without": {"--watch-cache=false"}} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { restart(t) })
			require.NoError(t, server.RestartAPIServer(t.Context(), flags...))
			revision := must.Get(server.Revision(t.Context()))(t)
			const path = "/api/v1/namespaces/default/configmaps?resourceVersion="
			future := fmt.Sprint(path, revision+10_000)
			for _, bookmarks := range []string{"", "&allowWatchBookmarks=true"} {
				began := time.Now()
				code, body, err := server.Do(t.Context(), cluster.AdminToken, http.MethodGet, future+"&watch=1&timeoutSeconds=2"+bookmarks, nil)
				require.NoError(t, err, "it ends in good order")
				require.Equal(t, http.StatusOK, code)
				require.Empty(t, string(body))
				require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
			}
			code, body, err := server.Do(t.Context(), cluster.AdminToken, http.MethodGet, future+"&resourceVersionMatch=NotOlderThan", nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusGatewayTimeout, code)
			require.Contains(t, string(body), "Too large resource version")
			_, body, err = server.Do(t.Context(), cluster.AdminToken, http.MethodGet,
				future+"&resourceVersionMatch=NotOlderThan&watch=1&sendInitialEvents=true&allowWatchBookmarks=true", nil)
			require.NoError(t, err)
			require.Contains(t, string(body), "Too large resource version")
		})
	}
}
