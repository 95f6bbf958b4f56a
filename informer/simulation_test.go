package informer

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/apiclient"
	"github.com/leatproject/leat/apiclient/websocket"
	"github.com/leatproject/leat/cache"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	simulationSeeds = flag.Int("seeds", 100, "how many seeds TestSimulation runs")
	simulationSeed  = flag.Int("seed", -1, "the one seed that TestSimulation runs")
)

// simulated is the object type of a simulation.
type simulated struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Value int `json:"value"`
	} `json:"spec"`
}

var simulatedResource = api.Resource{Group: "leat.test", Version: "v1", Kind: "Simulated", Plural: "simulateds", Namespaced: true}

// coverage counts what all seeds have reached together.
type coverage struct {
	mu     sync.Mutex // seeds run in parallel
	faults map[string]int
	rules  map[string]int
	rows   map[string]int // of the reflector's table: the request and its outcome
}

func (c *coverage) add(counts *map[string]int, what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	(*counts)[what] += n
}

// TestSimulation runs the whole pipeline, from HTTP to handlers of every kind, with random changes, faults and pauses,
// on fake time. After the faults, the cache must be equal to the server, every handler must have a legal history that
// leads to the state of the cache, and no goroutine may be left. A seed always leads to the same result:
//
//	go test ./informer -run TestSimulation -seed 42
func TestSimulation(t *testing.T) {
	c := &coverage{faults: map[string]int{}, rules: map[string]int{}, rows: map[string]int{}}
	first, last := 0, *simulationSeeds
	if testing.Short() {
		last = min(last, 40)
	}
	if *simulationSeed >= 0 {
		first, last = *simulationSeed, *simulationSeed+1
	}
	t.Run("seeds", func(t *testing.T) {
		for seed := first; seed < last; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { newSimulation(t, c, uint64(seed)).run() })
			})
		}
	})
	if last-first >= 100 {
		for _, f := range simulatedFaults {
			require.NotZero(t, c.faults[f.name], "no seed has met the fault %q", f.name)
		}
		for _, rule := range coalescingRules {
			require.NotZero(t, c.rules[rule], "no seed has met the coalescing rule %q", rule)
		}
		rows := slices.Clone(reflectorRows)
		if last-first >= 1000 {
			rows = append(rows, rareRows...)
		}
		for _, row := range rows {
			require.NotZero(t, c.rows[row], "no seed has met the row %q of the reflector's table", row)
		}
	}
}

// simulatedFault is a fault of a simulation, with forms of which it chooses.
type simulatedFault struct {
	name string
	// list is the kind of first list that an informer needs to meet the fault there: "streamed", "paged", or empty if
	// the kind does not matter.
	list  string
	forms []string // as in package faultplan; empty for those that need a snapshot or a kind of frame
}

// simulatedFaults are the faults of which a simulation chooses: every fault of the test server, except lists without an
// end, because the simulation would not end either. Lists are rare, so every other seed begins with one of these faults
// in place. No fault then depends on luck.
var simulatedFaults = []simulatedFault{
	{"fail", "", []string{
		"fail 500 times=2", "fail 503 times=4 retry-after=1s", "fail 504 times=1", "fail 429 times=3 retry-after=2s", "fail 403 times=2",
		"fail 401 times=1", "fail 404 times=4", "fail 502 times=3",
	}},
	{"garbage", "", []string{`fail 200 body="{\"kind\":\"SimulatedList\",\"items\":[{" times=2`}},
	{"delay", "", []string{"delay 1s times=3", "delay 12s times=3", "delay 35s times=3"}},
	{"stall", "", []string{"stall times=1", "stall 50 times=1", "stall 350 times=1"}},
	{"reset", "", []string{"reset times=1", "reset times=3"}},
	{"cut", "", []string{"cut 0 times=1", "cut 150 abrupt times=1", "cut 700 times=1", "cut 1800 abrupt times=1"}},
	{"stale", "", nil},
	{"refuse WatchList", "streamed", []string{"refuse-watchlist"}},
	{"ignore limit", "paged", []string{"ignore-limit"}},
	{"short watch", "", []string{"short-watch 0s times=4", "short-watch 1s abrupt times=4", "short-watch 2s times=4"}},
	{"drop event", "", []string{"drop times=1", "drop times=3"}},
	{noEnd, "streamed", nil},
	{"duplicate event", "", []string{"duplicate times=1", "duplicate times=5"}},
	{"hold event", "", []string{"hold times=1", "hold 1 times=3", "hold 3 times=2"}},
	{"malform", "", []string{"malform times=1", "malform times=5"}},
	{"cut frame", "", []string{"cut-frame 0 times=1", "cut-frame 60 abrupt times=1", "cut-frame 180 times=1"}},
	{"end watch", "", []string{
		"end-watch times=1", "end-watch abrupt times=1", "end-watch 410 times=1", "end-watch 429 abrupt times=1", "end-watch 500 times=1",
	}},
	{"stall events", "", []string{"stall-events times=1"}},
	{"disconnect", "", []string{"disconnect", "disconnect abrupt"}},
	{"compact", "", []string{"compact"}},
	{restored, "", nil},
	{"outage", "", []string{"outage"}},
}

func (f simulatedFault) make(s *simulation) faults.Fault {
	switch f.name {
	case "stale":
		return faults.Fault{Effect: faults.Stale{At: s.past}}
	case restored:
		return faults.Fault{Effect: faults.Restore{To: s.past}}
	case noEnd:
		return faults.Fault{Match: faults.Match{Frames: []watch.EventType{faults.InitialEventsEnd}}, Times: 1, Effect: faults.Drop{}}
	}
	parsed := must.Get(faultplan.Parse(f.forms[s.rand.IntN(len(f.forms))]))(s.t)
	return parsed.Fault
}

const noEnd = "no end of the initial list"

const restored = "restore"

// simulation is one seed.
type simulation struct {
	t        *testing.T
	coverage *coverage
	rand     *rand.Rand
	server   *testserver.Server
	informer *Informer[*simulated]
	past     *testserver.Snapshot
	first    *simulatedFault // injected at the beginning, or nil
	faults   map[string][]*testserver.Injection
	handlers []*simulatedHandler
	ended    chan struct{} // closed when slow handlers become quick
}

func newSimulation(t *testing.T, c *coverage, seed uint64) *simulation {
	s := &simulation{
		t: t, coverage: c, rand: rand.New(rand.NewPCG(seed, 7)),
		faults: map[string][]*testserver.Injection{}, ended: make(chan struct{}),
	}
	served := testserver.Options{
		Seed: seed, FirstVersion: 1 + uint64(s.rand.IntN(2000)), History: 20 + s.rand.IntN(200),
		BookmarkInterval: time.Duration(1+s.rand.IntN(60)) * time.Second,
		NoWatchCache:     s.coin(), NoWatchList: s.rand.IntN(4) == 0, ExpiredStatus: s.coin(),
	}
	wanted := Options[*simulated]{
		Tuning: reflector.Tuning{
			NoWatchList:     s.rand.IntN(3) == 0,
			PageSize:        int64(s.rand.IntN(3) * 3),
			Rand:            rand.New(rand.NewPCG(seed, 8)).Float64,
			MinWatchTimeout: time.Duration(1+s.rand.IntN(10)) * time.Minute,
		},
		Handling:  Handling{ResyncPeriod: time.Duration(s.rand.IntN(2)) * 20 * time.Second},
		Mutations: DetectMutations(func(m cache.Mutation) { t.Errorf("an object of the cache was changed: %v", m) }),
	}
	if seed%4 >= 2 {
		wanted.Mutations = nil // so that the reflector's goroutine processes single changes
	}
	if seed%2 == 1 {
		s.first = &simulatedFaults[int(seed/2)%len(simulatedFaults)]
		switch s.first.list {
		case "streamed":
			served.NoWatchList, wanted.NoWatchList = false, false
		case "paged":
			served.NoWatchCache, wanted.NoWatchList, wanted.PageSize = true, true, 3
		}
	}
	s.server = testserver.New(served)
	s.server.Register(simulatedResource)
	s.past = s.server.Snapshot()
	client := must.Get(apiclient.New(apiclient.Config{Host: s.server.URL(), Transport: s.server.Client().Transport}))(t)
	view := apiclient.NewPartial[*simulated](client, simulatedResource, "")
	lw := api.ListerWatcher[*simulated](view)
	if s.rand.IntN(4) == 0 {
		lw = websocket.Watch(view)
	}
	wanted.OnRequest = func(r reflector.Request) {
		row := r.Verb + " " + r.Outcome
		if r.Complete {
			row += ", complete"
		}
		c.add(&c.rows, row, 1)
	}
	s.informer = New(lw, wanted)
	return s
}

func (s *simulation) coin() bool { return s.rand.IntN(2) == 0 }

func (s *simulation) run() {
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.server.Run(ctx) })
	for range 1 + s.rand.IntN(3) {
		s.join()
	}
	for range s.rand.IntN(30) {
		s.write()
	}
	if s.first != nil {
		s.inject(*s.first)
	}
	running.Go(func() {
		if err := s.informer.Run(ctx); err != nil {
			s.t.Errorf("Run: %v", err)
		}
	})
	if s.first != nil {
		s.pass(time.Second) // before another step can remove it
	}
	for range 200 {
		s.step()
	}
	s.settle()
	s.check()
	cancel()
	running.Wait()
}

// step makes one random step.
func (s *simulation) step() {
	switch n := s.rand.IntN(100); {
	case n < 60:
		s.write()
	case n < 72:
		s.pass(time.Duration(s.rand.ExpFloat64() * float64(3*time.Second)))
	case n < 82:
		s.inject(simulatedFaults[s.rand.IntN(len(simulatedFaults))])
	case n < 88:
		s.heal()
	case n < 92:
		s.past = s.server.Snapshot()
	case n < 96:
		s.join()
	default:
		s.leave()
	}
}

func (s *simulation) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// write creates, changes or deletes one of thirty objects, or replaces it by another object of the same name.
func (s *simulation) write() {
	key := api.Key{Namespace: fmt.Sprint("ns", s.rand.IntN(3)), Name: fmt.Sprint("object", s.rand.IntN(10))}
	create := func() {
		var o simulated
		o.Namespace, o.Name, o.Spec.Value = key.Namespace, key.Name, s.rand.Int()
		must.Get(s.server.Create(simulatedResource, o))(s.t)
	}
	_, err := s.server.Get(simulatedResource, key)
	switch n := s.rand.IntN(10); {
	case err != nil:
		create()
	case n < 6:
		must.Get(s.server.Edit(simulatedResource, key, func(u *unstructured.Unstructured) {
			require.NoError(s.t, unstructured.SetNestedField(u.Object, s.rand.Int64N(1<<40), "spec", "value"))
		}))(s.t)
	default:
		require.NoError(s.t, s.server.Delete(simulatedResource, key))
		if n == 9 {
			create()
		}
	}
}

// inject injects a fault.
func (s *simulation) inject(f simulatedFault) {
	healed := f.name == restored && s.coin() // otherwise the other faults hide the restore
	if healed {
		s.server.Heal()
		synctest.Wait()
	}
	if f.name == restored && !healed { // and probes meet it, too
		fail := simulatedFaults[0].make(s)
		fail.Match.Verbs = []string{"list"}
		s.server.Inject(fail)
	}
	reached := s.informer.ResourceVersion()
	s.faults[f.name] = append(s.faults[f.name], s.server.Inject(f.make(s)))
	if f.name == restored && reached != "" {
		s.restored(reached, healed)
	}
}

// restored gives the informer time to notice that the server was restored. reached is a version that the informer had
// reached. A restored server whose version passes the former one within seconds cannot be told from one that was not
// restored; without a connection, within the longest pause. A detected restore must show in the status.
func (s *simulation) restored(reached string, healed bool) {
	s.past = s.server.Snapshot()
	s.pass(3 * time.Minute) // a request that the fault held back may open a watch after the restore, without a reset
	if healed && s.past.ResourceVersion() != reached {
		s.checkCache()
	}
}

// heal removes the faults, or half of them.
func (s *simulation) heal() {
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		for _, i := range s.faults[name] {
			if s.coin() {
				i.Remove()
			}
		}
	}
}

// settle ends all faults, and makes the pipeline list again. Dropped events are missing until a list, so settle makes
// changes and compacts them while no watch is open.
func (s *simulation) settle() {
	close(s.ended)
	s.server.Heal()
	s.pass(2 * time.Minute)
	outage := s.server.Inject(faults.Fault{Effect: faults.Outage{}})
	s.write()
	compact := s.server.Inject(faults.Fault{Effect: faults.Compact{}})
	s.pass(time.Second)
	outage.Remove()
	s.pass(30 * time.Minute)
	s.faults["compact"] = append(s.faults["compact"], compact)
	for name, injections := range s.faults {
		for _, i := range injections {
			s.coverage.add(&s.coverage.faults, name, i.Seen())
		}
	}
	s.server.Heal()
	s.pass(time.Minute)
}

// check compares the server with the cache, and the cache with the state of each handler.
func (s *simulation) check() {
	s.checkCache()
	for _, h := range s.handlers {
		h.check()
	}
	require.Empty(s.t, s.informer.Undecodable())
}

func (s *simulation) checkCache() {
	want := s.server.Snapshot().Versions(simulatedResource)
	got := map[api.Key]string{}
	for key, o := range s.informer.Cache().All() {
		got[key] = o.GetResourceVersion()
	}
	require.Equal(s.t, want, got, "the cache equals the server; %v", s.informer.Status())
	for key, o := range s.informer.Cache().All() {
		fresh := must.Get(s.server.Get(simulatedResource, key))(s.t)
		value, _, _ := unstructured.NestedInt64(fresh.Object, "spec", "value")
		require.EqualValues(s.t, value, o.Spec.Value)
	}
}

// simulatedHandler is one handler of a simulation. It checks its history.
type simulatedHandler struct {
	s            *simulation
	registration Registration
	state        map[api.Key]*simulated
	removed      bool
}

// join adds a handler of a random kind.
func (s *simulation) join() {
	h := &simulatedHandler{s: s, state: map[api.Key]*simulated{}}
	o := HandlerOptions{Name: fmt.Sprint("handler", len(s.handlers)), Coalesce: s.coin()}
	slow := s.rand.IntN(3) == 0
	o.NonBlocking = !slow && len(s.handlers)%2 == 0
	pauses := rand.New(rand.NewPCG(s.rand.Uint64(), 0))
	registration := must.Get(s.informer.Subscribe(func(n api.Change[*simulated]) {
		if slow {
			select {
			case <-time.After(time.Duration(pauses.ExpFloat64() * float64(5*time.Second))):
			case <-s.ended:
			}
		}
		h.apply(n)
	}, o))(s.t)
	h.registration = registration
	s.handlers = append(s.handlers, h)
	if o.Coalesce {
		s.observe(registration)
	}
}

// observe counts the coalescing rules that the listener of a registration applies.
func (s *simulation) observe(r Registration) {
	p := pipelineOf(s.informer)
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.handlers.all[len(p.handlers.all)-1]
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Equal(s.t, r.Name(), l.name)
	require.True(s.t, l.coalesce)
	observed := func(b backlog[*simulated]) backlog[*simulated] {
		return observedBacklog{b.(*coalescingBacklog[*simulated]), s.coverage}
	}
	fresh := l.newBacklog
	l.newBacklog = func() backlog[*simulated] { return observed(fresh()) }
	l.backlog = observed(l.backlog)
}

// leave removes a handler. It must not be called afterwards.
func (s *simulation) leave() {
	h := s.handlers[s.rand.IntN(len(s.handlers))]
	h.registration.Remove()
	h.removed = true
}

func (h *simulatedHandler) apply(n api.Change[*simulated]) {
	key := api.KeyOf(n.Object)
	if wrong := illegal(n, h.state[key]); wrong != "" {
		h.s.t.Errorf("handler %s: notification of %s: %s", h.registration.Name(), key, wrong)
	}
	if n.Type == api.Deleted {
		delete(h.state, key)
	} else {
		h.state[key] = n.Object
	}
}

// illegal returns why a notification is illegal for a handler that knows this state of its object, or "". It uses no
// assertion, because a million calls of one would cost more than the rest of the test.
func illegal(n api.Change[*simulated], known *simulated) string {
	switch {
	case n.Type == api.Added && known != nil:
		return "an Added of an object that the handler has"
	case n.Type == api.Added:
		return ""
	case known == nil:
		return fmt.Sprintf("%s without an Added", n.Type)
	case n.Object.UID != known.UID:
		return fmt.Sprintf("%s of another UID", n.Type)
	case n.Type == api.Updated && n.Old != known:
		return "Old is not the state that the handler got last"
	case n.Resync && n.Object != known:
		return "a resync with another state"
	default:
		return ""
	}
}

// check compares the state of the handler with the cache.
func (h *simulatedHandler) check() {
	if h.removed {
		<-h.registration.Done()
		return
	}
	require.True(h.s.t, runstate.IsClosed(h.registration.Synced()))
	require.Zero(h.s.t, h.registration.Pending())
	require.Len(h.s.t, h.state, h.s.informer.Cache().Len(), "handler %s", h.registration.Name())
	for key, o := range h.s.informer.Cache().All() {
		require.Same(h.s.t, o, h.state[key])
	}
}

// reflectorRows are the rows of the reflector's table: the request, its outcome, and whether the state was complete at
// that time. Only a run with a thousand seeds reaches the rare rows too.
var (
	reflectorRows = []string{
		"watchlist done, complete", "watchlist broken, complete", "watchlist rejected", "watchlist busy", "watchlist broken",
		"list done", "list done, complete", "list busy", "list broken",
		"watch done", "watch expired", "watch busy", "watch rejected", "watch backwards", "watch broken",
		"probe done", "probe rolled back", "probe busy", "probe rejected", "probe broken",
	}
	rareRows = []string{
		"watchlist done", "watchlist deadline", "watchlist expired", "watchlist too large", "watchlist expired, complete",
		"watchlist backwards, complete", "watchlist busy, complete", "watchlist rolled back", "list expired", "list too large",
		"list rejected", "list rolled back", "watch rolled back", "watch unconfirmed",
	}
)

// coalescingRules are the rows of the package's table, as observedBacklog names them.
var coalescingRules = []string{
	"Added+Updated", "Added+Deleted", "Updated+Updated", "Updated+Deleted", "Deleted+Added", "Deleted Added+Deleted", "Deleted Added+Updated",
}

// observedBacklog counts the rules that a coalescing backlog applies.
type observedBacklog struct {
	*coalescingBacklog[*simulated]
	coverage *coverage
}

func (b observedBacklog) push(g *group[*simulated]) {
	if g.replay != nil {
		b.coalescingBacklog.push(g)
		return
	}
	for _, n := range g.changes {
		if s := b.slots[api.KeyOf(n.Object)]; s != nil && !b.initial {
			rule := "+" + n.Type.String()
			if s.newest != nil {
				rule = s.newest.Type.String() + rule
			}
			if s.deletion != nil {
				separator := ""
				if s.newest != nil {
					separator = " "
				}
				rule = api.Deleted.String() + separator + rule
			}
			b.coverage.add(&b.coverage.rules, rule, 1)
		}
		// One at a time, so that the next rule sees the result of this one.
		b.coalescingBacklog.push(&group[*simulated]{changes: []api.Change[*simulated]{n}})
	}
}
