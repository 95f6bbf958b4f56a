package livepage_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/cachedclient"
	"github.com/leatproject/leat/controller"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/informer/factory"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
	"github.com/leatproject/leat/manager/leaderelection"
	"github.com/leatproject/leat/observe/livepage"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/scale/shard"
	"github.com/leatproject/leat/scale/shardedsource"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faults"
	"github.com/leatproject/leat/workqueue"
)

var (
	_ manager.StatePage = (*livepage.Page)(nil)

	configMaps = api.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}
)

type configMap struct {
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data"`
}

func newPage(t *testing.T, o livepage.Options) *livepage.Page {
	t.Helper()
	o.Program = "mill"
	return must.Get(livepage.New(o))(t)
}

func register(t *testing.T, p *livepage.Page, name string, part any) (remove func()) {
	t.Helper()
	remove = must.Get(p.Register(name, part))(t)
	return remove
}

// send makes a request as a browser on this machine does.
func send(p *livepage.Page, debug bool, method, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host, r.RemoteAddr = "127.0.0.1:8081", "127.0.0.1:40000"
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	p.Handler(debug).ServeHTTP(w, r)
	return w
}

// answer is the part of the state that the tests read.
type answer struct {
	Program string
	Now     int64
	Leader  *struct {
		Leads, Election bool
		Lease, Leader   string
		Error           string
	}
	Health []struct {
		Path   string
		OK     bool
		Checks []struct {
			Name string
			OK   bool
			Text string
		}
	}
	Electors  []electorAnswer
	Shards    []shardAnswer
	Informers []struct {
		Name, Phase, Version, Error string
		Running, Synced, Failing    bool
		Objects, Bytes, Sampled     int
		Depth                       int
		Batches, Changes            uint64
		Stored                      histogram
		ScopeCount                  int
		Shard                       shardDropped
		Scopes                      []struct {
			Name, Phase, Error string
			Synced             bool
			Shard              shardDropped
		}
		Handlers []struct {
			Name       string
			Pending    int
			StuckSince int64
		}
	}
	Controllers []struct {
		Name                            string
		Stats                           controller.Stats
		Added, Waited, Worked, Answered histogram
		Running                         []struct {
			Key    string
			Causes []workqueue.Cause
		}
		Unsynced []struct{ Name, NotSynced string }
	}
	Queues []struct {
		Name  string
		Stats workqueue.Stats
	}
	Gates []struct {
		Name  string
		Stats cachedclient.GateStats
	}
}

type electorAnswer struct {
	Name                           string
	Leads                          bool
	Lease, Leader, Identity, Error string
}

type shardDropped struct {
	By, Reason string
	Dropped    int
}

type shardAnswer struct {
	Name, Identity, Text string
	Member, Failing      bool
	Members, Ranges      int
	Held, Waiting        float64
	WaitingSince         int64
}

type histogram struct {
	First  int
	Counts []uint64
}

func (h histogram) total() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func look(t *testing.T, p *livepage.Page, debug bool) answer {
	t.Helper()
	w := send(p, debug, http.MethodGet, "/state")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var a answer
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a))
	return a
}

// world is a server with a client, and what runs until the test ends.
type world struct{ *fixture.Fixture }

func newWorld(t *testing.T) world { return world{fixture.New(t, testserver.Options{})} }

// inWorld runs a test in a bubble, with a page.
func inWorld(t *testing.T, test func(t *testing.T, p *livepage.Page, w world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newPage(t, livepage.Options{}), newWorld(t)) })
}

func (w world) informer(o informer.Options[*configMap]) *informer.Informer[*configMap] {
	return informer.New(apiclient.NewPartial[*configMap](w.Client, configMaps, ""), o)
}

func (w world) create(name string) {
	w.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "b"}}}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetNamespace("default")
	object.SetName(name)
	w.Create(configMaps, object)
}

func TestState(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		w.create("one")
		maps := w.informer(informer.Options[*configMap]{})
		work := make(chan struct{})
		c := controller.New("grinder", controller.Func[api.Key](func(context.Context, api.Key) (controller.Result, error) {
			<-work
			return controller.Result{}, nil
		}), controller.Options{Workers: 2})
		c.Watch(controller.For(maps))
		queue := workqueue.New[string](workqueue.Options{Name: "mail"})
		queue.Add("a letter")
		register(t, p, "", maps)
		register(t, p, "", c)
		register(t, p, "", queue)
		register(t, p, "writes", cachedclient.NewGate(cachedclient.GateOptions{}))
		register(t, p, "something else", 7)

		a := look(t, p, true)
		require.Equal(t, "mill", a.Program)
		require.Nil(t, a.Leader)
		require.Empty(t, a.Health)
		require.Equal(t, "idle", a.Informers[0].Phase)
		require.False(t, a.Informers[0].Synced)

		fixture.Start(t, maps.Run)
		fixture.Start(t, c.Run)
		synctest.Wait()
		a = look(t, p, true)
		i, k := a.Informers[0], a.Controllers[0]
		require.Equal(t, "configmaps", i.Name)
		require.Equal(t, "watching", i.Phase)
		require.True(t, i.Synced)
		require.Equal(t, 1, i.Objects)
		require.NotEmpty(t, i.Version)
		require.Equal(t, 1, i.Sampled)
		require.Greater(t, i.Bytes, 50)
		require.Equal(t, "grinder: configmaps", i.Handlers[0].Name)
		require.Equal(t, "grinder", k.Name)
		require.Equal(t, 1, k.Stats.ActiveWorkers)
		require.Equal(t, "default/one", k.Running[0].Key)
		require.Equal(t, "initial", k.Running[0].Causes[0].Event)
		require.Equal(t, 1, a.Queues[0].Stats.Depth)
		require.Equal(t, "mail", a.Queues[0].Name)
		require.Equal(t, "writes", a.Gates[0].Name)
		close(work)
		w.create("two")
		synctest.Wait()
		a = look(t, p, true)
		require.EqualValues(t, 2, a.Controllers[0].Worked.total())
		require.EqualValues(t, 1, a.Controllers[0].Answered.total(), "the first list is no event")
		require.EqualValues(t, 2, a.Informers[0].Batches)
		require.EqualValues(t, 2, a.Informers[0].Stored.total())
	})
}

// TestMeasurementsEnd looks, and then does not.
func TestMeasurementsEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		maps := w.informer(informer.Options[*configMap]{})
		register(t, p, "", maps)
		fixture.Start(t, maps.Run)
		count := func() uint64 { return look(t, p, true).Informers[0].Batches }
		w.create("unseen")
		synctest.Wait()
		require.Zero(t, count())
		w.create("seen")
		synctest.Wait()
		<-time.After(14 * time.Second)
		require.EqualValues(t, 1, count(), "each look lasts 15 seconds")
		<-time.After(14 * time.Second)
		w.create("seen-too")
		synctest.Wait()
		fixture.Pass(15 * time.Second)
		w.create("unseen-again")
		synctest.Wait()
		require.EqualValues(t, 2, count())
	})
}

// TestNobodyLooks counts goroutines and allocations of a page without a viewer, and goroutines of one with a viewer.
func TestNobodyLooks(t *testing.T) {
	before := runtime.NumGoroutine()
	p := newPage(t, livepage.Options{})
	part := &observed{}
	register(t, p, "", part)
	require.Nil(t, part.f, "no hook before the first look")
	require.Equal(t, 2, look(t, p, true).Informers[0].Depth)
	require.NotNil(t, part.f)
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	stored := informer.TracedBatch{Objects: 3, Received: time.Now()}
	require.Zero(t, testing.AllocsPerRun(100, func() { part.f(stored) }), "a viewer costs no allocation a batch")
}

// observed is an informer that has only a hook.
type observed struct {
	informer.Any
	f func(informer.TracedBatch)
}

func (o *observed) Status() informer.Status { return informer.Status{Name: "things", Depth: 2} }

func (o *observed) Stopped() <-chan struct{} { return nil }

func (o *observed) Trace(t informer.Trace) (stop func()) {
	o.f = t.Batch
	return func() { o.f = nil }
}

func TestRemove(t *testing.T) {
	p := newPage(t, livepage.Options{})
	idle := controller.Func[string](func(context.Context, string) (controller.Result, error) { return controller.Result{}, nil })
	first, second := &observed{}, &observed{}
	removes := []func(){
		register(t, p, "", first), register(t, p, "", second),
		register(t, p, "", controller.New("c", idle, controller.Options{})),
		register(t, p, "", controller.New("c", idle, controller.Options{})),
		register(t, p, "", workqueue.New[string](workqueue.Options{Name: "q"})),
		register(t, p, "g", cachedclient.NewGate(cachedclient.GateOptions{})),
	}
	a := look(t, p, true)
	require.Equal(t, "things #2", a.Informers[1].Name)
	require.Equal(t, "c #2", a.Controllers[1].Name)
	require.NotNil(t, second.f)
	late := &observed{}
	removes = append(removes, register(t, p, "", late))
	require.NotNil(t, late.f, "somebody looks")
	register(t, p, "", late)()
	require.Len(t, look(t, p, true).Informers, 3, "it is shown already, so the second remove does nothing")
	for _, remove := range removes {
		remove()
	}
	a = look(t, p, true)
	require.Empty(t, len(a.Informers)+len(a.Controllers)+len(a.Queues)+len(a.Gates))
	require.Nil(t, second.f)
	require.Nil(t, late.f)
}

// TestFactory shows the informers of a factory while they run.
func TestFactory(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		f := factory.New(factory.Options{})
		remove := register(t, p, "", f)
		share, err := factory.Shared(f, api.ListerWatcher[*configMap](apiclient.NewPartial[*configMap](w.Client, configMaps, "")), informer.Options[*configMap]{})
		require.NoError(t, err)
		fixture.Start(t, f.Run)
		synctest.Wait()
		require.Equal(t, "configmaps", look(t, p, true).Informers[0].Name)
		share.Release()
		<-share.Done()
		require.Empty(t, look(t, p, true).Informers)
		_, err = factory.Shared(f, api.ListerWatcher[*configMap](apiclient.NewPartial[*configMap](w.Client, configMaps, "")), informer.Options[*configMap]{})
		require.NoError(t, err)
		require.Len(t, look(t, p, true).Informers, 1)
		remove()
		require.Empty(t, look(t, p, true).Informers)
	})
}

// TestDebug has everything that needs debug, with and without it.
func TestDebug(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		w.Server.Inject(faults.Fault{Effect: faults.Fail{Code: http.StatusForbidden}, Match: faults.Match{Resource: "configmaps"}})
		elector := must.Get(leaderelection.New(w.Client, leaderelection.Options{Namespace: "secret", Name: "secret", Identity: "secret-0"}))(t)
		maps := w.informer(informer.Options[*configMap]{})
		c := controller.New("grinder", controller.Func[api.Key](func(ctx context.Context, _ api.Key) (controller.Result, error) {
			<-ctx.Done()
			return controller.Result{}, nil
		}), controller.Options{})
		m := must.Get(manager.New(manager.Options{Elector: elector, ShowReasons: true, Admin: manager.AdminOptions{Page: p}}))(t)
		require.NoError(t, m.Readyz().Add("water", func(context.Context) error { return errors.New("secret: no water") }))
		register(t, p, "", maps)
		register(t, p, "", c)
		fixture.Start(t, maps.Run)
		fixture.Start(t, c.Run)
		c.Add(api.Key{Namespace: "secret", Name: "secret"}, workqueue.Item{})
		fixture.Pass(time.Second)
		for _, debug := range []bool{true, false} {
			body := send(p, debug, http.MethodGet, "/state").Body.String()
			require.Equal(t, debug, strings.Contains(body, "secret"), body)
			a := look(t, p, debug)
			require.True(t, a.Informers[0].Failing)
			require.Equal(t, debug, a.Informers[0].Error != "")
			require.Equal(t, debug, len(a.Controllers[0].Running) == 1)
			require.Equal(t, 1, a.Controllers[0].Stats.ActiveWorkers)
			require.True(t, a.Leader.Election)
			require.False(t, a.Leader.Leads)
			readyz := a.Health[slices.IndexFunc(a.Health, func(h struct {
				Path   string
				OK     bool
				Checks []struct {
					Name string
					OK   bool
					Text string
				}
			},
			) bool {
				return h.Path == "readyz"
			})]
			require.False(t, readyz.OK)
			for _, check := range readyz.Checks {
				if check.Name == "water" {
					require.Equal(t, debug, strings.Contains(check.Text, "no water"))
				}
			}
		}
	})
}

// TestElectors has two replicas in one process.
func TestElectors(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		lead := map[string]context.CancelFunc{}
		for _, name := range []string{"first", "second"} {
			e := must.Get(leaderelection.New(w.Client, leaderelection.Options{Namespace: "default", Name: "mill", Identity: name}))(t)
			register(t, p, name, e)
			ctx, cancel := context.WithCancel(t.Context())
			lead[name] = cancel
			fixture.Start(t, func(end context.Context) error {
				context.AfterFunc(end, cancel)
				return e.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return nil })
			})
			<-time.After(time.Second)
		}
		a := look(t, p, true)
		require.Equal(t, "first", a.Leader.Leader)
		require.Len(t, a.Electors, 2)
		require.True(t, a.Electors[0].Leads)
		require.Equal(t, electorAnswer{Name: "second", Lease: "default/mill", Leader: "first", Identity: "second"}, a.Electors[1])
		lead["first"]()
		<-time.After(10 * time.Second)
		a = look(t, p, true)
		require.True(t, a.Leader.Leads)
		require.Equal(t, "second", a.Leader.Leader)
		require.Equal(t, []electorAnswer{{Name: "elector 1"}, {Name: "elector 2", Leads: true}}, look(t, p, false).Electors)
		fault := w.Server.Inject(faults.Fault{Effect: faults.Fail{Code: http.StatusForbidden}, Match: faults.Match{Resource: "leases.coordination.k8s.io"}})
		<-time.After(5 * time.Second)
		a = look(t, p, true)
		require.True(t, a.Leader.Leads, "it has time to renew the lease")
		require.Contains(t, a.Electors[1].Error, "a fault was injected")
		require.Equal(t, a.Electors[1].Error, a.Leader.Error)
		require.NotContains(t, send(p, false, http.MethodGet, "/state").Body.String(), "a fault was injected")
		fault.Remove()
		<-time.After(3 * time.Second)
		require.Empty(t, look(t, p, true).Leader.Error)
	})
}

// TestShards has a member that waits for a range in which another one works.
func TestShards(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		var first *shard.Member
		for _, name := range []string{"first", "second"} {
			m := must.Get(shard.New(w.Client, shard.Options{Namespace: "default", Group: "mill", Identity: name}))(t)
			fixture.Start(t, m.Run)
			<-time.After(10 * time.Second)
			if first == nil {
				first = m
				_, end, ok := first.Begin(t.Context(), 1<<63)
				require.True(t, ok)
				t.Cleanup(end)
				continue
			}
			register(t, p, m.Name(), m)
		}
		now := time.Now()
		a := look(t, p, true).Shards
		require.Len(t, a, 1)
		require.InDelta(t, now.Add(-10*time.Second).UnixMilli(), a[0].WaitingSince, 100)
		a[0].WaitingSince = 0
		require.Equal(t, shardAnswer{
			Name: "shard-mill", Identity: "second", Member: true, Members: 2, Waiting: 0.5,
			Text: "second holds 0 ranges (0.0 % of the hashes); the group mill has 2 members; " +
				"waits for 1 range (50.0 % of the hashes), because first has not released them",
		}, a[0])
		bare := look(t, p, false).Shards[0]
		require.Equal(t, "shard 1", bare.Name)
		require.Empty(t, bare.Text+bare.Identity)
	})
}

// TestScopes has more scopes than the page shows. One that fails is first.
func TestScopes(t *testing.T) {
	inWorld(t, func(t *testing.T, p *livepage.Page, w world) {
		w.create("a")
		set := scopes.New(configMaps, scopes.Options[*configMap]{})
		source := apiclient.NewPartial[*configMap](w.Client, configMaps, "")
		for n := range uint64(30) {
			hashes := hashrange.NewSet(hashrange.Range{From: n << 58, To: (n + 1) << 58})
			require.NoError(t, set.Add(scopes.Scope[*configMap]{Source: shardedsource.New(source, hashrange.UID, hashes, shardedsource.Options{}), Name: hashes.String()}))
		}
		other := apiclient.NewPartial[*configMap](w.Client, configMaps, "other")
		require.NoError(t, set.Add(scopes.Scope[*configMap]{Source: other, Name: "with a wrong selector", Selector: api.Selector{Labels: "a b"}}))
		register(t, p, "", set)
		fixture.Start(t, set.Run)
		<-time.After(time.Minute)
		i := look(t, p, true).Informers[0]
		require.Equal(t, 31, i.ScopeCount)
		require.Len(t, i.Scopes, 20)
		require.Equal(t, "with a wrong selector", i.Scopes[0].Name)
		require.NotEmpty(t, i.Scopes[0].Error)
		require.True(t, i.Scopes[1].Synced)
		require.Equal(t, shardedsource.Client, i.Scopes[1].Shard.By)
		require.Contains(t, i.Shard.Reason, "ShardedListAndWatch")
		require.NotZero(t, i.Shard.Dropped)
		i = look(t, p, false).Informers[0]
		require.Equal(t, 31, i.ScopeCount)
		require.Empty(t, i.Scopes)
		require.Empty(t, i.Shard.Reason)
	})
}

// TestChecksAreNotCalledOften polls every second, as a browser does.
func TestChecksAreNotCalledOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, livepage.Options{})
		m := must.Get(manager.New(manager.Options{Admin: manager.AdminOptions{Page: p}}))(t)
		calls := 0
		require.NoError(t, m.Healthz().Add("counts", func(context.Context) error { calls++; return nil }))
		for range 10 {
			require.False(t, look(t, p, true).Leader.Election)
			<-time.After(time.Second)
		}
		require.Equal(t, 2, calls)
	})
}

// TestTheTimeIsThatOfTheCounters has a check that takes a second. The time of an answer is not before it.
func TestTheTimeIsThatOfTheCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, livepage.Options{})
		m := must.Get(manager.New(manager.Options{Admin: manager.AdminOptions{Page: p}}))(t)
		require.NoError(t, m.Readyz().Add("slow", func(context.Context) error {
			<-time.After(time.Second)
			return nil
		}))
		began := time.Now()
		now := look(t, p, true).Now
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, time.Now().UnixMilli(), now)
	})
}

// TestChecksOutliveTheViewer has a viewer that leaves at once.
func TestChecksOutliveTheViewer(t *testing.T) {
	p := newPage(t, livepage.Options{})
	m := must.Get(manager.New(manager.Options{Admin: manager.AdminOptions{Page: p}}))(t)
	require.NoError(t, m.Healthz().Add("water", func(ctx context.Context) error { return ctx.Err() }))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	send(p, true, http.MethodGet, "/state", func(r *http.Request) { *r = *r.WithContext(gone) })
	for _, h := range look(t, p, true).Health {
		require.True(t, h.OK || h.Path == "readyz", "%+v", h)
	}
}

// TestHangingChecks has a check that waits for its context, and then one that ignores it.
func TestHangingChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, livepage.Options{})
		m := must.Get(manager.New(manager.Options{Admin: manager.AdminOptions{Page: p}}))(t)
		hangs := make(chan struct{})
		stop := func(context.Context) error { return nil }
		require.NoError(t, m.Healthz().Add("water", func(ctx context.Context) error { return stop(ctx) }))
		health := func() answer { return look(t, p, true) }
		require.True(t, health().Health[0].OK)
		<-time.After(5 * time.Second)
		stop = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		before := time.Now()
		require.False(t, health().Health[0].OK)
		require.Equal(t, 2*time.Second, time.Since(before))
		<-time.After(5 * time.Second)
		stop = func(context.Context) error { <-hangs; return nil }
		done := make(chan answer, 1)
		go func() { done <- health() }()
		synctest.Wait()
		before = time.Now()
		require.Len(t, health().Health, 3, "the last answer")
		require.Zero(t, time.Since(before))
		<-time.After(7 * time.Second)
		late := health().Health
		require.Len(t, late, 4)
		require.Equal(t, "checks", late[3].Path)
		require.False(t, late[3].OK)
		require.Contains(t, late[3].Checks[0].Text, "no answer for 7s")
		close(hangs)
		require.True(t, (<-done).Health[0].OK)
		require.Len(t, health().Health, 3)
	})
}

func TestOtherOriginsAreRefused(t *testing.T) {
	p := newPage(t, livepage.Options{AllowedHosts: []string{"leat.example"}})
	browser := func(r *http.Request) { r.Header.Set("Accept-Language", "en") }
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, path := range []string{"/", "/state", "/page.js"} {
		for name, c := range map[string]struct {
			change []func(*http.Request)
			code   int
		}{
			"loopback":       {nil, 200},
			"localhost":      {[]func(*http.Request){host("localhost:9000"), browser}, 200}, // a port-forward
			"allowed":        {[]func(*http.Request){host("leat.example"), browser}, 200},
			"same origin":    {[]func(*http.Request){header("Origin", "http://127.0.0.1:8081")}, 200},
			"rebound":        {[]func(*http.Request){host("evil.example:8081"), browser}, 403},
			"foreign origin": {[]func(*http.Request){header("Origin", "https://evil.example")}, 403},
			"foreign fetch":  {[]func(*http.Request){header("Sec-Fetch-Site", "cross-site")}, 403},
			"other machine":  {[]func(*http.Request){func(r *http.Request) { r.RemoteAddr = "10.1.2.3:40000" }}, 403},
			"no address":     {[]func(*http.Request){func(r *http.Request) { r.RemoteAddr = "@" }}, 403},
		} {
			w := send(p, true, http.MethodGet, path, c.change...)
			require.Equal(t, c.code, w.Code, "%s %s: %s", path, name, w.Body)
		}
		require.Equal(t, http.StatusMethodNotAllowed, send(p, true, http.MethodPost, path).Code)
	}
	open := newPage(t, livepage.Options{OtherMachines: true})
	require.Equal(t, 200, send(open, true, http.MethodGet, "/", func(r *http.Request) { r.RemoteAddr = "10.1.2.3:40000" }).Code)
	require.ErrorContains(t, must.Err(livepage.New(livepage.Options{AllowedHosts: []string{"a b"}})), "livepage: Options.AllowedHosts: ")
}

// TestPolicy reads every file, as a browser would.
func TestPolicy(t *testing.T) {
	p := newPage(t, livepage.Options{})
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8",
		"/icon.svg": "image/svg+xml", "/uPlot.LICENSE": "text/plain; charset=utf-8", "/state": "application/json",
	} {
		w := send(p, false, http.MethodGet, path)
		require.Equal(t, 200, w.Code, path)
		require.Equal(t, kind, w.Header().Get("Content-Type"), path)
		policy := w.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'; script-src 'self'; style-src 'self';")
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Resource-Policy"))
	}
	document := send(p, false, http.MethodGet, "/").Body.String()
	require.NotRegexp(t, `<style|style=|<script>|\son[a-z]+=|https?://`, document)
	require.Equal(t, 404, send(p, false, http.MethodGet, "/nothing").Code)
}

// TestManyParts polls a program of 50 informers. The answer stays small.
func TestManyParts(t *testing.T) {
	p := newPage(t, livepage.Options{})
	for range 50 {
		o := &observed{}
		register(t, p, "", o)
		_ = look(t, p, false)
		store := o.f // the hook ends if the loop is slow
		for n := range 2000 {
			store(informer.TracedBatch{Objects: 1, Received: time.Now().Add(-time.Duration(n) * time.Microsecond)})
		}
	}
	require.Less(t, send(p, false, http.MethodGet, "/state").Body.Len(), 100_000, "bytes for 50 informers")
}
