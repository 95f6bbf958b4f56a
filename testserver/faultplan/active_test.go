package faultplan_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
)

// inBubble runs test with a server and a function that sends a GET and returns the code, or 0 without an answer.
func inBubble(t *testing.T, seed uint64, test func(t *testing.T, a *faultplan.Active, s *testserver.Server, get func(path string) int)) {
	t.Helper()
	fixture.Run(t, testserver.Options{}, func(t *testing.T, f *fixture.Fixture) {
		active, client := faultplan.NewActive(f.Server, seed), f.Server.Client()
		defer func() {
			active.Close()
			client.CloseIdleConnections()
		}()
		test(t, active, f.Server, func(path string) int {
			answer, err := client.Get(f.Server.URL() + path)
			if err != nil {
				return 0
			}
			require.NoError(t, answer.Body.Close())
			return answer.StatusCode
		})
	})
}

func inject(t *testing.T, a *faultplan.Active, texts ...string) []faultplan.Status {
	t.Helper()
	var all []faultplan.Fault
	for _, text := range texts {
		f := must.Get(faultplan.Parse(text))(t)
		all = append(all, f)
	}
	out := must.Get(a.InjectAll(all))(t)
	return out
}

const podsPath = "/api/v1/pods"

func TestFaultsByText(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, a *faultplan.Active, _ *testserver.Server, get func(string) int) {
		require.Equal(t, []faultplan.Status{
			{ID: 1, Fault: "list pods: fail 503 times=1", Active: true}, {ID: 2, Fault: "services: fail 429", Active: true},
		}, inject(t, a, "list pods: fail 503 times=1", "services: fail 429"))
		require.Equal(t, 503, get(podsPath))
		require.Equal(t, 200, get(podsPath))
		require.Equal(t, 429, get("/api/v1/services"))
		require.Equal(t, 1, a.List()[0].Seen)
		require.True(t, a.Remove(2))
		require.False(t, a.Remove(2))
		require.Equal(t, 200, get("/api/v1/services"))
		inject(t, a, "fail 500")
		require.Equal(t, 500, get(podsPath))
		require.Equal(t, 3, a.List()[1].ID, "numbers are not used again")
		a.RemoveAll()
		require.Equal(t, 200, get(podsPath))
		require.Empty(t, a.List())
	})
}

// TestOtherNamesOfResources gives an error for a resource whose name never matches, and for no other.
func TestOtherNamesOfResources(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, a *faultplan.Active, _ *testserver.Server, get func(string) int) {
		for text, says := range map[string]string{
			"create configmap: fail 403":        `fault "create configmap: fail 403": "configmap" never matches; write configmaps`,
			"Pod: fail 403":                     `fault "Pod: fail 403": "Pod" never matches; write pods`,
			"deployments: fail 403":             `fault "deployments: fail 403": "deployments" never matches; write deployments.apps`,
			"deployment.apps/scale: fail 500":   `fault "deployment.apps/scale: fail 500": "deployment.apps/scale" never matches; write deployments.apps/scale`,
			"update pod/status: fail 403":       `fault "update pod/status: fail 403": "pod/status" never matches; write pods/status`,
			"pods/status: fail 403":             "",
			"deployments.apps: fail 403":        "",
			"wheels.leat.example: fail 403":     "",
			"deployment.leat.example: fail 403": "",
			"list: fail 403 times=1 skip=99":    "",
		} {
			f, err := faultplan.Parse(text)
			require.NoError(t, err)
			good, err := faultplan.Parse("services: fail 429")
			require.NoError(t, err)
			_, err = a.InjectAll([]faultplan.Fault{good, f})
			if says == "" {
				require.NoError(t, err)
				a.RemoveAll()
				continue
			}
			require.EqualError(t, err, says)
			require.Empty(t, a.List())
			require.Equal(t, 200, get("/api/v1/services"), "nothing is injected")
		}
	})
}

// TestPlansAreReplayed sends the same requests to two servers with the same plan, and to one with another seed.
func TestPlansAreReplayed(t *testing.T) {
	plan := func(seed uint64) (codes []int, again faultplan.Plan) {
		inBubble(t, seed, func(t *testing.T, a *faultplan.Active, _ *testserver.Server, get func(string) int) {
			inject(t, a, "pods: fail 503 30%", "pods: fail 429 30%")
			for range 200 {
				codes = append(codes, get(podsPath))
			}
			text := a.Plan().YAML()
			var err error
			again, err = faultplan.ParsePlan(text)
			require.NoError(t, err)
		})
		return codes, again
	}
	first, printed := plan(7)
	require.EqualValues(t, 7, printed.Seed)
	require.Len(t, printed.Faults, 2)
	second, _ := plan(printed.Seed)
	require.Equal(t, first, second)
	other, _ := plan(8)
	require.NotEqual(t, first, other)
	count := map[int]int{}
	for _, code := range first {
		count[code]++
	}
	require.InDelta(t, 60, count[503], 25, "30 % of 200")
	require.InDelta(t, 42, count[429], 25, "30 % of the rest")
}

func TestTimesOfFaults(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, a *faultplan.Active, _ *testserver.Server, get func(string) int) {
		inject(t, a, "pods: fail 503 after=10s for=5s every=1m")
		at := func(seconds, code int) {
			t.Helper()
			<-time.After(time.Until(start().Add(time.Duration(seconds)*time.Second + time.Millisecond)))
			require.Equal(t, code, get(podsPath), "after %d s", seconds)
			require.Equal(t, code == 503, a.List()[0].Active)
		}
		at(0, 200)
		at(10, 503)
		at(14, 503)
		at(15, 200)
		at(70, 503)
		at(75, 200)
		at(130, 503)
		require.Equal(t, 4, a.List()[0].Seen, "over all injections")
		require.True(t, a.Remove(1))
		require.Equal(t, 200, get(podsPath))

		inject(t, a, "pods: fail 500 after=1s", "pods: fail 500 after=2s")
		require.True(t, a.Remove(2))
		a.Close()
		<-time.After(time.Hour)
		require.Equal(t, 200, get(podsPath))
		_, err := a.InjectAll(nil)
		require.ErrorIs(t, err, faultplan.ErrClosed)
	})
}

// start is the time at which every bubble begins.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestSnapshots(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, a *faultplan.Active, s *testserver.Server, get func(string) int) {
		create := func(name string) {
			t.Helper()
			namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
			must.Get(s.Create(namespaces, namespace))(t)
		}
		create("one")
		before := a.TakeSnapshot("before")
		create("two")
		require.Equal(t, map[string]string{"before": before.ResourceVersion()}, a.Snapshots())
		require.Equal(t, 200, get("/api/v1/namespaces/two"))
		stale := inject(t, a, "get: stale before")
		require.Equal(t, 404, get("/api/v1/namespaces/two"))
		a.Remove(stale[0].ID)
		require.Equal(t, 200, get("/api/v1/namespaces/two"))

		inject(t, a, "stale for=1m")
		create("three")
		require.Equal(t, 404, get("/api/v1/namespaces/three"), "a stale without a name begins now")
		<-time.After(time.Minute + time.Second)
		require.Equal(t, 200, get("/api/v1/namespaces/three"))

		inject(t, a, "restore before")
		require.Equal(t, 404, get("/api/v1/namespaces/two"))
		require.Equal(t, 200, get("/api/v1/namespaces/one"))

		waiting := inject(t, a, "get: stale later after=1m")
		require.Equal(t, faultplan.Status{ID: waiting[0].ID, Fault: "get: stale later after=1m", Waiting: "later"}, waiting[0])
		<-time.After(time.Hour)
		create("four")
		a.TakeSnapshot("later")
		create("five")
		require.Equal(t, 200, get("/api/v1/namespaces/five"), "the delay begins with the snapshot")
		<-time.After(time.Minute + time.Second)
		require.Equal(t, 200, get("/api/v1/namespaces/four"))
		require.Equal(t, 404, get("/api/v1/namespaces/five"))
		a.TakeSnapshot("later")
		require.Equal(t, 404, get("/api/v1/namespaces/five"), "a fault keeps its snapshot")
		require.Empty(t, a.List()[len(a.List())-1].Waiting)
	})
}

// TestPlansWithSnapshotsAreLoaded takes the plan of one server to another one.
func TestPlansWithSnapshotsAreLoaded(t *testing.T) {
	var plan faultplan.Plan
	inBubble(t, 7, func(t *testing.T, a *faultplan.Active, _ *testserver.Server, _ func(string) int) {
		a.TakeSnapshot("before")
		inject(t, a, "get: stale before")
		inject(t, a, "restore before")
		var err error
		plan, err = faultplan.ParsePlan(a.Plan().YAML())
		require.NoError(t, err)
	})
	inBubble(t, plan.Seed, func(t *testing.T, a *faultplan.Active, server *testserver.Server, get func(string) int) {
		must.Get(a.InjectAll(plan.Faults))(t)
		require.Equal(t, plan.YAML(), a.Plan().YAML())
		must.Get(server.Create(namespaces, map[string]any{"metadata": map[string]any{"name": "one"}}))(t)
		require.Equal(t, 200, get("/api/v1/namespaces/one"))
		a.TakeSnapshot("before")
		require.NoError(t, server.Delete(namespaces, api.Key{Name: "one"}))
		require.Equal(t, 200, get("/api/v1/namespaces/one"), "the stale fault has begun")
	})
}

func TestOutagesEnd(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, a *faultplan.Active, _ *testserver.Server, get func(string) int) {
		inject(t, a, "outage for=3s")
		require.Zero(t, get(podsPath))
		<-time.After(3*time.Second + time.Millisecond)
		require.Equal(t, http.StatusOK, get(podsPath))
	})
}

var namespaces = api.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
