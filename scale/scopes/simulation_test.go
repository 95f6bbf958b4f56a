package scopes_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/scopes"
	"github.com/leatproject/leat/testserver"
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

// simulatedFaults are the faults of which a simulation chooses.
var simulatedFaults = []func(*simulation) faults.Fault{
	func(s *simulation) faults.Fault {
		code := []int{500, 503, 504, 429, 403, 401, 404, 502}[s.rand.IntN(8)]
		return faults.Fault{Times: 1 + s.rand.IntN(8), Effect: faults.Fail{Code: code, RetryAfter: time.Duration(s.rand.IntN(3)) * time.Second}}
	},
	func(s *simulation) faults.Fault {
		return faults.Fault{Times: 3, Effect: faults.Delay{For: time.Duration(s.rand.IntN(40)) * time.Second}}
	},
	func(s *simulation) faults.Fault {
		return faults.Fault{Times: 1, Effect: faults.Stall{After: s.rand.IntN(400)}}
	},
	func(s *simulation) faults.Fault {
		return faults.Fault{Times: 1, Effect: faults.Cut{After: s.rand.IntN(2000), Abrupt: s.coin()}}
	},
	func(s *simulation) faults.Fault { return faults.Fault{Effect: faults.Stale{At: s.past}} },
	func(*simulation) faults.Fault { return faults.Fault{Effect: faults.RefuseWatchList{}} },
	func(s *simulation) faults.Fault {
		return faults.Fault{Times: 4, Effect: faults.ShortWatch{For: time.Duration(s.rand.IntN(3)) * time.Second, Abrupt: s.coin()}}
	},
	func(s *simulation) faults.Fault {
		return faults.Fault{Times: 1 + s.rand.IntN(3), Effect: faults.Drop{}}
	},
	func(s *simulation) faults.Fault {
		return faults.Fault{Times: 1 + s.rand.IntN(5), Effect: faults.Duplicate{}}
	},
	func(s *simulation) faults.Fault {
		return faults.Fault{Times: 1 + s.rand.IntN(3), Effect: faults.Hold{Frames: s.rand.IntN(4)}}
	},
	func(s *simulation) faults.Fault {
		return faults.Fault{Times: 1 + s.rand.IntN(5), Effect: faults.Malform{}}
	},
	func(*simulation) faults.Fault {
		return faults.Fault{Times: 1, Effect: faults.EndWatch{Error: &metav1.Status{
			Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired,
		}}}
	},
	func(*simulation) faults.Fault { return faults.Fault{Times: 1, Effect: faults.StallEvents{}} },
	func(s *simulation) faults.Fault { return faults.Fault{Effect: faults.Disconnect{Abrupt: s.coin()}} },
	func(*simulation) faults.Fault { return faults.Fault{Effect: faults.Compact{}} },
	func(*simulation) faults.Fault { return faults.Fault{Effect: faults.Outage{}} },
	func(s *simulation) faults.Fault { return faults.Fault{Effect: faults.Restore{To: s.past}} },
}

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
	handlers []*simulatedHandler
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
	s.past = s.server.Snapshot()
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
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.set.Run(ctx) }()
	for range 150 {
		s.step()
	}
	for len(s.scopes) < 2 {
		s.add()
	}
	s.settle()
	s.check()
	cancel()
	require.NoError(s.t, <-ended)
}

func (s *simulation) step() {
	switch n := s.rand.IntN(100); {
	case n < 55:
		s.write()
	case n < 69:
		s.pass(time.Duration(s.rand.ExpFloat64() * float64(3*time.Second)))
	case n < 77:
		s.inject(s.rand.IntN(len(simulatedFaults)))
	case n < 84:
		for _, f := range s.faults {
			if s.coin() {
				f.Remove()
			}
		}
	case n < 87:
		s.past = s.server.Snapshot()
	case n < 90:
		s.join()
	case n < 95:
		s.add()
	default:
		s.remove()
	}
}

func (s *simulation) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
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
	require.NoError(s.t, s.set.Add(scope))
	s.scopes[scope.Name] = c
}

func (s *simulation) remove() {
	names := s.set.Names()
	if len(names) == 0 {
		return
	}
	name := names[s.rand.IntN(len(names))]
	require.NotNil(s.t, s.set.Remove(name, scopes.Notify))
	delete(s.scopes, name)
}

// write creates, changes, moves or deletes one of thirty objects, or replaces it by another object of the same name.
func (s *simulation) write() {
	key := api.Key{Namespace: fmt.Sprint("ns", s.rand.IntN(simulatedNamespaces)), Name: fmt.Sprint("object", s.rand.IntN(8))}
	color := fmt.Sprint("color", s.rand.IntN(simulatedColors))
	_, err := s.server.Get(widgets, key)
	switch n := s.rand.IntN(10); {
	case err != nil:
		s.create(key.Namespace, key.Name, color)
	case n < 4:
		s.paint(key.Namespace, key.Name, color)
	case n < 7:
		_, err := s.server.Edit(widgets, key, func(u *unstructured.Unstructured) {
			require.NoError(s.t, unstructured.SetNestedField(u.Object, s.rand.Int64N(1<<40), "spec", "value"))
		})
		require.NoError(s.t, err)
	default:
		require.NoError(s.t, s.server.Delete(widgets, key))
		if n == 9 {
			s.create(key.Namespace, key.Name, color)
		}
	}
}

// inject injects a fault. A restore gets time to be noticed, because a server that has passed the former version cannot
// be told from one that was not restored.
func (s *simulation) inject(at int) {
	restore := at == len(simulatedFaults)-1
	if restore {
		s.server.Heal()
		synctest.Wait()
	}
	s.faults = append(s.faults, s.server.Inject(simulatedFaults[at](s)))
	if restore {
		s.past = s.server.Snapshot()
		s.pass(22 * time.Minute) // the longest watch, which may be one from the future, and its grace
	}
}

// settle ends all faults, and makes every scope list again. Dropped events are missing until a list.
func (s *simulation) settle() {
	close(s.ended)
	s.server.Heal()
	s.pass(2 * time.Minute)
	outage := s.server.Inject(faults.Fault{Effect: faults.Outage{}})
	for range 10 {
		s.write()
	}
	s.server.Inject(faults.Fault{Effect: faults.Compact{}})
	s.pass(time.Second)
	outage.Remove()
	s.pass(30 * time.Minute)
	s.server.Heal()
	s.pass(2 * time.Minute)
}

// check compares the server with the cache, and the cache with the state of each handler.
func (s *simulation) check() {
	want, got := map[api.Key]string{}, map[api.Key]string{}
	for key, version := range s.server.Snapshot().Versions(widgets) {
		u, err := s.server.Get(widgets, key)
		require.NoError(s.t, err)
		for _, c := range s.scopes {
			if c.selects(u) {
				want[key] = version
			}
		}
	}
	for key, o := range s.set.Cache().All() {
		got[key] = o.ResourceVersion
	}
	require.Equal(s.t, want, got, "%v", s.set.Status())
	require.True(s.t, runstate.IsClosed(s.set.Synced()))
	status := s.set.Status()
	require.Empty(s.t, status.LateScopes)
	require.Len(s.t, status.Scopes, len(s.scopes))
	require.Empty(s.t, s.set.Undecodable())
	for _, h := range s.handlers {
		require.True(s.t, runstate.IsClosed(h.registration.Synced()))
		require.Zero(s.t, h.registration.Pending())
		require.Len(s.t, h.state, len(got))
		for key, o := range s.set.Cache().All() {
			require.Same(s.t, o, h.state[key])
		}
	}
}

// simulatedHandler is one handler of a simulation. It checks its history.
type simulatedHandler struct {
	registration informer.Registration
	state        map[api.Key]*widget
}

// join adds a handler of a random kind.
func (s *simulation) join() {
	h := &simulatedHandler{state: map[api.Key]*widget{}}
	slow := s.rand.IntN(3) == 0
	o := informer.HandlerOptions{Name: fmt.Sprint("handler", len(s.handlers)), Coalesce: s.coin(), NonBlocking: !slow && s.coin()}
	registration, err := s.set.Subscribe(func(c api.Change[*widget]) {
		if slow {
			select {
			case <-time.After(time.Second):
			case <-s.ended:
			}
		}
		key := api.KeyOf(c.Object)
		if wrong := illegal(c, h.state[key]); wrong != "" {
			s.t.Errorf("%s: %s: %s", o.Name, api.FormatKey(key), wrong)
		}
		if c.Type == api.Deleted {
			delete(h.state, key)
		} else {
			h.state[key] = c.Object
		}
	}, o)
	require.NoError(s.t, err)
	h.registration = registration
	s.handlers = append(s.handlers, h)
}

// illegal returns why a change is illegal for a handler that knows this state of its object, or "".
func illegal(c api.Change[*widget], known *widget) string {
	switch {
	case c.Type == api.Added && known != nil:
		return "an Added of an object that the handler has"
	case c.Type == api.Added:
		return ""
	case known == nil:
		return c.Type.String() + " without an Added"
	case c.Object.UID != known.UID:
		return c.Type.String() + " of another UID"
	case c.Type == api.Updated && c.Old != known:
		return "Old is not the state that the handler got last"
	default:
		return ""
	}
}
