package metrics_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/metrics"
	"github.com/leatproject/leat/scale/shard"
)

// TestAMemberOfAManager adds a member to a manager. Its metrics, its readiness and its state at /debug follow it, while
// another member keeps it waiting.
func TestAMemberOfAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		measured, registry := registered(t)
		c := newCluster(t)
		client := must.Get(apiclient.New(c.config))(t)
		member := func(identity string, f hashrange.Field) *shard.Member {
			return must.Get(shard.New(client, shard.Options{Namespace: "default", Group: "mill", Identity: identity, Field: f}))(t)
		}
		foreign, second := member("foreign", hashrange.Namespace), member("second", hashrange.UID)
		endForeign := fixture.Start(t, foreign.Run)
		fixture.Pass(5 * time.Second)

		m := must.Get(manager.New(manager.Options{Metrics: measured, ShowReasons: true}))(t)
		r := must.Get(m.AddWith(second, manager.Placement{}))(t)
		require.Equal(t, manager.Others, r.Group(), "every replica is a member")
		admin := m.AdminHandler(manager.AdminOptions{Debug: true, Metrics: metrics.Handler(registry)})
		get := func(path string) (int, string) {
			w := httptest.NewRecorder()
			admin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Code, w.Body.String()
		}
		code, text := get("/readyz")
		require.Equal(t, http.StatusInternalServerError, code)
		require.Contains(t, text, "[-]shard-mill failed: shard: this replica has not joined the group yet")

		fixture.Start(t, m.Run)
		fixture.Pass(5 * time.Second)
		code, _ = get("/readyz")
		require.Equal(t, http.StatusOK, code, "a rolling update ends the members with other rules only then")
		_, text = get("/metrics")
		require.Contains(t, text, "leat_shard_member{group=\"mill\"} 0")
		require.Contains(t, text, "leat_shard_failing{group=\"mill\"} 1")

		endForeign()
		fixture.Pass(10 * time.Second)
		_, end, ok := second.Begin(t.Context(), 1<<63)
		require.True(t, ok)
		third := member("third", hashrange.UID)
		fixture.Start(t, third.Run)
		fixture.Pass(20 * time.Second)
		require.Equal(t, map[string]float64{"mill": 2}, values(t, registry, "leat_shard_members"))
		require.Equal(t, map[string]float64{"mill": 0.5}, values(t, registry, "leat_shard_releasing_ratio"))
		require.InDelta(t, 19, values(t, registry, "leat_shard_releasing_seconds")["mill"], 1.5)
		require.Less(t, values(t, registry, "leat_shard_lease_age_seconds")["mill"], 2.1)
		_, text = get("/debug/controllers/")
		require.JSONEq(t, `["shard-mill"]`, text)
		code, text = get("/debug/controllers/shard-mill")
		require.Equal(t, http.StatusOK, code)
		var shown struct {
			Summary string
			Members []struct {
				Identity string
				Claims   struct{ Share float64 }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text), &shown))
		require.Equal(t, "second holds 1 range (100.0 % of the hashes); the group mill has 2 members; "+
			"releases 1 range (50.0 % of the hashes) after 1 reconcile", shown.Summary)
		require.Len(t, shown.Members, 2)
		require.Equal(t, 1.0, shown.Members[0].Claims.Share)
		code, _ = get("/debug/why/default/a")
		require.Equal(t, http.StatusNotFound, code)

		waits := third.Status()
		require.Len(t, waits.Waiting, 1)
		require.Equal(t, shard.Wait{Ranges: hashrange.NewSet(hashrange.Range{From: 1 << 63}), Because: "second has not released them"}, waits.Waiting[0])
		end()
		fixture.Pass(5 * time.Second)
		require.Zero(t, values(t, registry, "leat_shard_releasing_seconds")["mill"])
		require.Empty(t, third.Status().Waiting)
		require.Zero(t, third.Status().WaitingSince)

		r.Remove()
		<-r.Done()
		_, text = get("/metrics")
		require.NotContains(t, text, "leat_shard_member{")
		code, text = get("/readyz?verbose")
		require.Equal(t, http.StatusOK, code)
		require.NotContains(t, text, "shard-mill")
	})
}
