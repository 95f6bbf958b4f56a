package scopes_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	simulationSeeds = flag.Int("seeds", 60, "how many seeds TestSimulation runs")
	simulationSeed  = flag.Int("seed", -1, "the one seed that TestSimulation runs")
)

// TestSimulation runs two or more scopes, from HTTP to handlers, with random changes, moves, faults, and scopes that
// come and go, on fake time. After the faults, the cache must have what the scopes select, and every handler must have
// a legal history that leads to the state of the cache. A seed always leads to the same result:
//
//	go test ./scale/scopes -run TestSimulation -seed 42
func TestSimulation(t *testing.T) {
	first, last := 0, *simulationSeeds
	if *simulationSeed >= 0 {
		first, last = *simulationSeed, *simulationSeed+1
	}
	for seed := first; seed < last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newSimulation(t, uint64(seed)).run() })
		})
	}
}

// simulatedFaults are the faults of which a simulation chooses, in the form of package faultplan. A stale answer and a
// restore need a snapshot, so inject makes them.
var simulatedFaults = []string{
	"fail 500 times=3", "fail 503 times=2 retry-after=1s", "fail 504 times=1", "fail 429 times=4 retry-after=2s", "fail 403 times=8",
	"fail 401 times=2", "fail 404 times=6", "fail 502 times=5", "delay 1s times=3", "delay 35s times=3", "stall 0 times=1",
	"stall 300 times=1", "cut 100 times=1", "cut 1500 abrupt times=1", "refuse-watchlist", "short-watch 0s times=4",
	"short-watch 2s abrupt times=4", "drop times=1", "drop times=3", "duplicate times=5", "hold times=2", "hold 3 times=1",
	"malform times=5", "end-watch 410 times=1", "stall-events times=1", "disconnect", "disconnect abrupt", "compact", "outage",
	stale, stale, restore, restore,
}

const stale, restore = "stale", "restore"

const (
	simulatedNamespaces = 4
	simulatedColors     = 3
)

// simulation is one seed.
type simulation struct {
	*world
	rand     *rand.Rand
	past     *testserver.Snapshot
	faults   []*testserver.Injection
	handlers []*fixture.History[*widget]
	ended    chan struct{} // closed when slow handlers become quick
	overlap  bool
	scopes   map[string]simulatedScope
	added    int
}

// simulatedScope is the selection of a scope. Empty fields select all.
type simulatedScope struct{ namespace, color string }

func (c simulatedScope) selects(u *unstructured.Unstructured) bool {
	return (c.namespace == "" || c.namespace == u.GetNamespace()) && (c.color == "" || c.color == u.GetLabels()["color"])
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{
		rand: rand.New(rand.NewPCG(seed, 11)), ended: make(chan struct{}), overlap: seed%2 == 1, scopes: map[string]simulatedScope{},
	}
	o := scopes.Options[*widget]{MaxLists: 1 + s.rand.IntN(3)}
	o.Tuning = reflector.Tuning{
		NoWatchList: s.rand.IntN(3) == 0, PageSize: int64(s.rand.IntN(3) * 3),
		Rand:            lockedRand(seed),
		MinWatchTimeout: time.Duration(1+s.rand.IntN(10)) * time.Minute,
	}
	o.ResyncPeriod = time.Duration(s.rand.IntN(2)) * 20 * time.Second
	s.world = newWorld(t, testserver.Options{
		Seed: seed, FirstVersion: 1 + uint64(s.rand.IntN(2000)), History: 20 + s.rand.IntN(200),
		BookmarkInterval: time.Duration(1+s.rand.IntN(60)) * time.Second,
		NoWatchCache:     s.coin(), NoWatchList: s.rand.IntN(4) == 0, ExpiredStatus: s.coin(),
	}, o)
	s.past = s.Server.Snapshot()
	return s
}

// lockedRand returns a source of jitter for several goroutines.
func lockedRand(seed uint64) func() float64 {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 12))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64()
	}
}

func (s *simulation) coin() bool { return s.rand.IntN(2) == 0 }

func (s *simulation) run() {
	for range 2 {
		s.add()
		s.join()
	}
	for range s.rand.IntN(30) {
		s.write()
	}
	stop := s.Start(s.set.Run)
	for range 150 {
		s.step()
	}
	for len(s.scopes) < 2 {
		s.add()
	}
	s.settle()
	s.check()
	stop()
}

func (s *simulation) step() {
	switch n := s.rand.IntN(100); {
	case n < 55:
		s.write()
	case n < 69:
		fixture.Pass(time.Duration(s.rand.ExpFloat64() * float64(3*time.Second)))
	case n < 77:
		s.inject()
	case n < 84:
		for _, f := range s.faults {
			if s.coin() {
				f.Remove()
			}
		}
	case n < 87:
		s.past = s.Server.Snapshot()
	case n < 90:
		s.join()
	case n < 95:
		s.add()
	default:
		s.remove()
	}
}

// add adds a scope. Without overlap, each scope has a namespace of its own.
func (s *simulation) add() {
	c := simulatedScope{namespace: fmt.Sprint("ns", s.rand.IntN(simulatedNamespaces))}
	if s.overlap {
		if s.coin() {
			c.namespace = ""
		}
		if s.rand.IntN(3) > 0 {
			c.color = fmt.Sprint("color", s.rand.IntN(simulatedColors))
		}
	}
	for _, other := range s.scopes {
		if other == c {
			return
		}
	}
	labels := ""
	if c.color != "" {
		labels = "color=" + c.color
	}
	scope := s.in(c.namespace, labels)
	s.added++
	scope.Name = fmt.Sprint("scope", s.added)
	require.NoError(s, s.set.Add(scope))
	s.scopes[scope.Name] = c
}

func (s *simulation) remove() {
	names := s.set.Names()
	if len(names) == 0 {
		return
	}
	name := names[s.rand.IntN(len(names))]
	require.NotNil(s, s.set.Remove(name, scopes.Notify))
	delete(s.scopes, name)
}

// write creates, changes, moves or deletes one of thirty objects, or replaces it by another object of the same name.
func (s *simulation) write() {
	key := api.Key{Namespace: fmt.Sprint("ns", s.rand.IntN(simulatedNamespaces)), Name: fmt.Sprint("object", s.rand.IntN(8))}
	color := fmt.Sprint("color", s.rand.IntN(simulatedColors))
	_, err := s.Server.Get(widgets, key)
	switch n := s.rand.IntN(10); {
	case err != nil:
		s.create(key.Namespace, key.Name, color)
	case n < 4:
		s.paint(key.Namespace, key.Name, color)
	case n < 7:
		s.Edit(widgets, key, func(u *unstructured.Unstructured) {
			require.NoError(s, unstructured.SetNestedField(u.Object, s.rand.Int64N(1<<40), "spec", "size"))
		})
	default:
		s.Delete(widgets, key)
		if n == 9 {
			s.create(key.Namespace, key.Name, color)
		}
	}
}

// inject injects a fault. A restore gets time to be noticed, because a server that has passed the former version cannot
// be told from one that was not restored.
func (s *simulation) inject() {
	var f faults.Fault
	switch text := simulatedFaults[s.rand.IntN(len(simulatedFaults))]; text {
	case stale:
		f.Effect = faults.Stale{At: s.past}
	case restore:
		s.Server.Heal()
		synctest.Wait()
		s.Server.Inject(faults.Fault{Effect: faults.Restore{To: s.past}})
		s.past = s.Server.Snapshot()
		fixture.Pass(22 * time.Minute) // the longest watch, which may be one from the future, and its grace
		return
	default:
		f = must.Get(faultplan.Parse(text))(s).Fault
	}
	s.faults = append(s.faults, s.Server.Inject(f))
}

// settle ends all faults, and makes every scope list again. Dropped events are missing until a list.
func (s *simulation) settle() {
	close(s.ended)
	s.Server.Heal()
	fixture.Pass(2 * time.Minute)
	outage := s.Server.Inject(faults.Fault{Effect: faults.Outage{}})
	for range 10 {
		s.write()
	}
	s.Server.Inject(faults.Fault{Effect: faults.Compact{}})
	fixture.Pass(time.Second)
	outage.Remove()
	fixture.Pass(30 * time.Minute)
	s.Server.Heal()
	fixture.Pass(2 * time.Minute)
}

// check compares the server with the cache, and the cache with the state of each handler.
func (s *simulation) check() {
	want, got := map[api.Key]string{}, map[api.Key]string{}
	for key, version := range s.Server.Snapshot().Versions(widgets) {
		u, err := s.Server.Get(widgets, key)
		require.NoError(s, err)
		for _, c := range s.scopes {
			if c.selects(u) {
				want[key] = version
			}
		}
	}
	for key, o := range s.set.Cache().All() {
		got[key] = o.ResourceVersion
	}
	require.Equal(s, want, got, "%v", s.set.Status())
	require.True(s, runstate.IsClosed(s.set.Synced()))
	status := s.set.Status()
	require.Empty(s, status.LateScopes)
	require.Len(s, status.Scopes, len(s.scopes))
	require.Empty(s, s.set.Undecodable())
	for _, h := range s.handlers {
		require.True(s, runstate.IsClosed(h.Synced()))
		require.Zero(s, h.Pending())
		has := h.Objects()
		require.Len(s, has, len(got))
		for key, o := range s.set.Cache().All() {
			require.Same(s, o, has[key])
		}
	}
}

// join adds a handler of a random kind, which checks its history.
func (s *simulation) join() {
	slow := s.rand.IntN(3) == 0
	o := informer.HandlerOptions{Name: fmt.Sprint("handler", len(s.handlers)), Coalesce: s.coin(), NonBlocking: !slow && s.coin()}
	s.handlers = append(s.handlers, fixture.Follow(s, s.set.Subscribe, o, func() {
		if slow {
			select {
			case <-time.After(time.Second):
			case <-s.ended:
			}
		}
	}))
}
