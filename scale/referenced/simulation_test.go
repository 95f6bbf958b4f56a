package referenced_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/reflector"
	"github.com/leatproject/leat/scale/referenced"
	"github.com/leatproject/leat/testserver"
	"github.com/leatproject/leat/testserver/faultplan"
	"github.com/leatproject/leat/testserver/faults"
)

var (
	simulationSeeds = flag.Int("seeds", 60, "how many seeds TestSimulation runs")
	simulationSeed  = flag.Int("seed", -1, "the one seed that TestSimulation runs")
)

// TestSimulation runs a set with random changes of Secrets and references, and random faults, on fake time. At each
// version of the cache, no object is older than the server's at that version. WaitFor returns no earlier than that.
// After the faults, the cache has exactly the referenced objects, and every handler had a legal history.
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

// simulatedFaults are the faults of which a simulation chooses, in the form of package faultplan. In lies, versions
// lie: a watch changes the order of events, it loses events, and the server is restored to a snapshot by inject.
var (
	simulatedFaults = []string{
		"fail 500", "fail 503 retry-after=1s", "fail 429 retry-after=2s", "fail 403", "fail 404", "fail 502", "delay 1s", "delay 35s",
		"stall 0", "stall 300", "cut 100", "cut 1500 abrupt", "refuse-watchlist", "short-watch 0s", "short-watch 2s abrupt", "duplicate",
		"end-watch 410", "stall-events", "disconnect", "disconnect abrupt", "compact",
	}
	lies = []string{"hold", "hold 3", "drop", "drop", restore, restore}
)

const restore = "restore"

// simulation is one seed.
type simulation struct {
	*rig
	rand     *rand.Rand
	past     *testserver.Snapshot
	handlers []*fixture.History[*secret]
	waits    sync.WaitGroup
	faults   []*testserver.Injection
	exact    bool // versions do not lie

	mu      sync.Mutex // guards the field below
	history map[api.Key][]state
}

// state is a state of a Secret on the server, which begins with a version.
type state struct {
	version int
	exists  bool
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{rand: rand.New(rand.NewPCG(seed, 11)), history: map[api.Key][]state{}, exact: seed%3 > 0}
	o := referenced.Options[*secret]{MaxFetches: 1 + s.rand.IntN(3)}
	o.Tuning = reflector.Tuning{
		NoWatchList: s.rand.IntN(3) == 0, PageSize: int64(s.rand.IntN(3) * 3),
		MinWatchTimeout: time.Duration(1+s.rand.IntN(10)) * time.Minute,
	}
	s.rig = newRig(t, testserver.Options{
		Seed: seed, FirstVersion: 5 + uint64(s.rand.IntN(2000)), History: 20 + s.rand.IntN(200),
		BookmarkInterval: time.Duration(1+s.rand.IntN(60)) * time.Second, NoWatchCache: s.coin(), ExpiredStatus: s.coin(),
	}, o, nil)
	s.past = s.Server.Snapshot()
	return s
}

func (s *simulation) coin() bool { return s.rand.IntN(2) == 0 }

func (s *simulation) run() {
	if s.exact {
		s.set.Trace(informer.Trace{Batch: func(informer.TracedBatch) { s.checkVersion() }})
	}
	s.join()
	for range s.rand.IntN(30) {
		s.change()
	}
	stop := s.Start(fixture.All(s.widgets.Run, s.set.Run))
	for range 200 {
		s.step()
	}
	s.settle()
	s.check()
	stop()
	s.waits.Wait()
}

func (s *simulation) step() {
	switch n := s.rand.IntN(100); {
	case n < 60:
		s.change()
	case n < 74:
		fixture.Pass(time.Duration(s.rand.ExpFloat64() * float64(2*time.Second)))
	case n < 82:
		s.inject()
	case n < 88:
		for _, f := range s.faults {
			f.Remove()
		}
		s.faults = nil
	case n < 90:
		s.past = s.Server.Snapshot()
	case n < 93:
		s.join()
	default:
		s.wait()
	}
}

func (s *simulation) inject() {
	from := simulatedFaults
	if !s.exact {
		from = slices.Concat(from, lies)
	}
	text := from[s.rand.IntN(len(from))]
	if text == restore {
		s.Server.Heal()
		synctest.Wait()
		s.Server.Inject(faults.Fault{Effect: faults.Restore{To: s.past}})
		s.past = s.Server.Snapshot()
		fixture.Pass(22 * time.Minute) // the longest watch, which may be one from the future, and its grace
		return
	}
	f := must.Get(faultplan.Parse(text))(s).Fault
	f.Times = 1 + s.rand.IntN(6)
	s.faults = append(s.faults, s.Server.Inject(f))
}

// change changes a Secret or the references of a Widget.
func (s *simulation) change() {
	if s.rand.IntN(4) > 0 {
		s.changeSecret(s.secret())
		return
	}
	k := api.Key{Namespace: fmt.Sprint("ns", s.rand.IntN(2)), Name: fmt.Sprint("w", s.rand.IntN(4))}
	if _, err := s.Server.Get(widgets, k); err == nil && s.rand.IntN(4) == 0 {
		s.Delete(widgets, k)
		return
	}
	var names []string
	for range s.rand.IntN(4) {
		names = append(names, s.secret().Name)
	}
	s.refer(k, names...)
}

func (s *simulation) secret() api.Key {
	return api.Key{Namespace: fmt.Sprint("ns", s.rand.IntN(2)), Name: fmt.Sprint("s", s.rand.IntN(8))}
}

// changeSecret creates, changes or deletes a Secret, or replaces it by another one of the same name. It returns the
// version after that.
func (s *simulation) changeSecret(k api.Key) (version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, err := s.Server.Get(secrets, k)
	if err == nil && s.rand.IntN(4) == 0 {
		s.Delete(secrets, k)
		s.note(k, number(before.GetResourceVersion())+1, false) // the version of the deletion is this or a newer one
		if s.coin() {
			return before.GetResourceVersion()
		}
	}
	version = s.write(k, fmt.Sprint(s.rand.Uint64()))
	s.note(k, number(version), true)
	return version
}

func (s *simulation) note(k api.Key, version int, exists bool) {
	s.history[k] = append(s.history[k], state{version, exists})
}

func number(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

// checkVersion fails if a cached object is older than the server's at the version of the cache.
func (s *simulation) checkVersion() {
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot := s.set.Snapshot()
	at := number(snapshot.ResourceVersion())
	for k, object := range snapshot.All() {
		for i, state := range s.history[k] {
			if state.exists && state.version <= at && number(object.ResourceVersion) < state.version {
				s.Errorf("%s at %s, state %d: the cache at %d should have %d", k, object.ResourceVersion, i, at, state.version)
			}
		}
	}
}

// wait changes a Secret, and waits for its version.
func (s *simulation) wait() {
	k := s.secret()
	version := s.changeSecret(k)
	s.waits.Go(func() {
		ctx, cancel := context.WithTimeout(s.Context(), time.Hour)
		defer cancel()
		if s.set.WaitFor(ctx, version) != nil || !s.exact {
			return
		}
		if object, found := s.set.Cache().Get(k); found && number(object.ResourceVersion) < number(version) {
			s.Errorf("after WaitFor of %s, %s has the version %s", version, k, object.ResourceVersion)
		}
	})
}

// settle ends all faults. If events were dropped, it makes the informers list again.
func (s *simulation) settle() {
	s.Server.Heal()
	fixture.Pass(2 * time.Minute)
	outage := s.Server.Inject(faults.Fault{Effect: faults.Outage{}})
	for range 10 {
		s.change()
	}
	s.Server.Inject(faults.Fault{Effect: faults.Compact{}})
	fixture.Pass(time.Second)
	outage.Remove()
	fixture.Pass(30 * time.Minute)
	s.Server.Heal()
	fixture.Pass(2 * time.Minute)
}

// check compares the cache with the server, and reads with the reasons for their errors.
func (s *simulation) check() {
	want, got := map[api.Key]string{}, map[api.Key]string{}
	versions, referenced := s.Server.Snapshot().Versions(secrets), map[api.Key]bool{}
	for _, w := range s.widgets.Cache().List() {
		for _, k := range references(w) {
			referenced[k] = true
			if version, exists := versions[k]; exists {
				want[k] = version
			}
		}
	}
	for k, o := range s.set.Cache().All() {
		got[k] = o.ResourceVersion
	}
	require.Equal(s, want, got, "%v", s.set.Status())
	require.True(s, runstate.IsClosed(s.set.Synced()))
	require.NoError(s, s.set.Status().Reflector.Err)
	require.Equal(s, s.set.Metadata().ResourceVersion(), s.set.ResourceVersion())
	for n := range 16 {
		k := api.Key{Namespace: fmt.Sprint("ns", n%2), Name: fmt.Sprint("s", n/2)}
		_, err := s.set.Get(s.Context(), k)
		s.checkError(k, err, referenced[k], want[k] != "")
	}
	for _, h := range s.handlers {
		require.Zero(s, h.Pending())
		has := h.Objects()
		require.Len(s, has, len(got))
		for k, o := range s.set.Cache().All() {
			require.Same(s, o, has[k])
		}
	}
}

func (s *simulation) checkError(k api.Key, err error, isReferenced, exists bool) {
	var unreferenced *referenced.NotReferencedError
	switch {
	case !isReferenced:
		require.ErrorAs(s, err, &unreferenced, k)
	case !exists:
		require.ErrorContains(s, err, "not found", k)
	default:
		require.NoError(s, err, k)
	}
}

// join adds a handler of a random kind, which checks its history.
func (s *simulation) join() {
	o := informer.HandlerOptions{Name: fmt.Sprint("handler", len(s.handlers)), Coalesce: s.coin(), NonBlocking: s.coin()}
	s.handlers = append(s.handlers, fixture.Follow(s, s.set.Subscribe, o))
}
