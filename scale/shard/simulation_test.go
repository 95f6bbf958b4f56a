package shard_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/api/hashrange"
	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/testserver"
)

var (
	seedCount = flag.Int("seeds", 10, "number of seeds of TestSimulation")
	firstSeed = flag.Uint64("seed", 1, "first seed of TestSimulation")
)

// These are the times of the Leases. One clock may run 1.5 times as fast as another, which is
// LeaseDuration/RenewDeadline.
const (
	nominalLease    = 60 * time.Second
	nominalDeadline = 40 * time.Second
	nominalRetry    = 6 * time.Second
)

const objects = 16

// TestSimulation runs replicas whose clocks have different rates. Twenty times a minute, a replica is killed, stopped
// (as by SIGSTOP), disconnected, slowed down, ended or started. The resource versions of all writes show whether two
// reconciles of one object were at work at once. When the disturbances are over, every object must be up to date, and
// every deletion must get a reconcile. A longer run: go test ./scale/shard -run TestSimulation -seeds 1000.
func TestSimulation(t *testing.T) {
	works, moved, seeds := 0, 0, *seedCount
	if testing.Short() {
		seeds = min(seeds, 3)
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(seeds); seed++ {
		ok := t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fixture.Fixture) {
				s := newSimulation(t, f.Server, seed)
				s.run()
				for _, problem := range s.problems {
					t.Error(problem)
				}
				works, moved = works+s.works, moved+s.moved
			})
		})
		if !ok {
			t.Fatalf("go test ./scale/shard -run TestSimulation -seed %d -seeds 1 -v", seed)
		}
	}
	t.Logf("%d reconciles wrote, and %d times another replica than before", works, moved)
	require.Greater(t, moved, 10*seeds, "the disturbances move objects")
}

// simulation is one seed.
type simulation struct {
	t         *testing.T
	server    *testserver.Server
	transport http.RoundTripper
	log       *zap.Logger
	field     hashrange.Field
	rates     []float64
	all       []*process

	mu       sync.Mutex // guards the fields below
	rand     *rand.Rand
	works    int
	moved    int
	made     int
	writes   map[string][]write // by object
	gone     map[string]bool    // the objects that a reconcile did not find
	problems []string
}

// write is a write of a reconcile.
type write struct {
	version int
	work    string
}

func newSimulation(t *testing.T, server *testserver.Server, seed uint64) *simulation {
	s := &simulation{
		t: t, server: server, transport: server.Client().Transport, log: zap.NewNop(), field: hashrange.UID, rates: []float64{1.2, 1, 0.8},
		rand: rand.New(rand.NewPCG(seed, 0)), writes: map[string][]write{}, gone: map[string]bool{},
	}
	if *seedCount == 1 {
		s.log = zaptest.NewLogger(t)
	}
	if seed%2 == 0 {
		s.field = hashrange.Namespace
	}
	for range objects {
		s.create()
	}
	return s
}

// create creates an object with a new name.
func (s *simulation) create() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	must.Get(s.server.Create(maps, &corev1.ConfigMap{
		ObjectMeta: meta(fmt.Sprintf("%x-team", s.rand.Uint64()), fmt.Sprint("mill-", s.made)),
		Data:       map[string]string{"want": "0"},
	}))(s.t)
}

// number returns a random number n with from ≤ n < to.
func (s *simulation) number(from, to int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return from + s.rand.IntN(to-from)
}

// workTime returns how long a reconcile takes: mostly seconds, sometimes longer than every deadline.
func (s *simulation) workTime() time.Duration {
	if s.number(0, 12) == 0 {
		return time.Duration(s.number(20, 75)) * time.Second
	}
	return time.Duration(s.number(0, 5000)) * time.Millisecond
}

func (s *simulation) newWork(p *process) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.works++
	return fmt.Sprintf("%d/%d", p.id, s.works)
}

// note records a write by the server's answer.
func (s *simulation) note(answer []byte) {
	var o struct {
		Metadata struct{ Namespace, Name, ResourceVersion string }
		Data     struct{ Work string }
	}
	err := json.Unmarshal(answer, &o)
	s.mu.Lock()
	defer s.mu.Unlock()
	version, notNumber := strconv.Atoi(o.Metadata.ResourceVersion)
	if err != nil || notNumber != nil {
		s.problems = append(s.problems, fmt.Sprintf("cannot read %s", answer))
		return
	}
	s.writes[o.Metadata.Name] = append(s.writes[o.Metadata.Name], write{version, o.Data.Work})
}

func (s *simulation) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// run makes disturbances for three minutes, and then checks.
func (s *simulation) run() {
	defer func() {
		for _, p := range s.all {
			p.end()
		}
	}()
	running := []*process{s.start(), s.start(), s.start()}
	for range 60 {
		<-time.After(time.Duration(s.number(0, 6000)) * time.Millisecond)
		switch s.number(0, 18) {
		case 0:
			s.create()
			continue
		case 1:
			s.delete()
			continue
		case 2, 3, 4, 5:
			s.change()
			continue
		}
		running = s.disturb(running)
	}
	for _, p := range running {
		p.Set(fixture.Connected)
	}
	<-time.After(4 * time.Minute)
	s.checkDone("after the disturbances")
	var deleted []string
	for i := range objects {
		s.change()
		if i%4 == 0 {
			s.create()
			<-time.After(time.Duration(s.number(0, 5000)) * time.Millisecond) // some reconciles run, and some wait
			deleted = append(deleted, s.delete())
		}
	}
	<-time.After(10 * time.Minute) // longer than the longest reconciles, one after the other
	s.checkDone("after the last changes")
	s.checkGone(deleted)
	s.checkDivided(running)
	s.checkWrites()
}

// disturb makes one disturbance, and returns the processes that still take part.
func (s *simulation) disturb(running []*process) []*process {
	p := running[s.number(0, len(running))]
	d := time.Duration(s.number(0, 90)) * time.Second
	again := func() { p.Set(fixture.Connected) }
	switch s.number(0, 9) {
	case 0:
		p.Set(fixture.Killed)
	case 1, 2:
		p.Set(fixture.Stopped)
		time.AfterFunc(d, again)
	case 3:
		p.Set(fixture.CutOff)
		time.AfterFunc(d, again)
	case 4:
		p.Set(fixture.Late)
		time.AfterFunc(d, again)
	case 5, 6:
		p.leave()
	default:
		if len(running) < 6 {
			running = append(running, s.start())
		}
	}
	var left []*process
	for _, p := range running {
		if !p.gone() {
			left = append(left, p)
		}
	}
	if len(left) < 2 {
		left = append(left, s.start())
	}
	return left
}

// pick returns one of the objects.
func (s *simulation) pick() *unstructured.Unstructured {
	all := must.Get(s.server.List(maps, ""))(s.t)
	return all[s.number(0, len(all))]
}

// delete deletes one object, and returns its name.
func (s *simulation) delete() string {
	o := s.pick()
	require.NoError(s.t, s.server.Delete(maps, api.KeyOf(o)))
	return o.GetName()
}

// noteGone notes that a reconcile did not find an object.
func (s *simulation) noteGone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[name] = true
}

// checkGone finds deletions that all replicas have forgotten.
func (s *simulation) checkGone(deleted []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range deleted {
		if !s.gone[name] {
			s.problems = append(s.problems, fmt.Sprintf("the deletion of %s is forgotten", name))
		}
	}
}

// change changes what one object has to become.
func (s *simulation) change() {
	o := s.pick()
	_, err := s.server.Edit(maps, api.KeyOf(o), func(u *unstructured.Unstructured) {
		u.Object["data"].(map[string]any)["want"] = fmt.Sprint(s.number(1, 1_000_000))
	})
	require.NoError(s.t, err)
}

// checkDone finds objects that all replicas have forgotten.
func (s *simulation) checkDone(when string) {
	all := must.Get(s.server.List(maps, ""))(s.t)
	for _, o := range all {
		if data := o.Object["data"].(map[string]any); data["want"] != data["done"] {
			s.problem("%s, %s is forgotten: %v", when, o.GetName(), data)
		}
	}
}

// checkDivided compares the ranges of the replicas with all hashes.
func (s *simulation) checkDivided(running []*process) {
	var all hashrange.Set
	for _, p := range running {
		status := p.Status()
		if !status.Held.Equal(status.Target) || !all.Intersect(status.Held).Empty() {
			s.problem("process %d is not at rest: %+v", p.id, status)
		}
		all = all.Union(status.Held)
	}
	if !all.Equal(hashrange.All()) {
		s.problem("no replica has %s", hashrange.All().Minus(all))
	}
}

// checkWrites finds reconciles of one object that were at work at once. In the order of the resource versions, the
// writes of each reconcile must follow each other.
func (s *simulation) checkWrites() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, writes := range s.writes {
		sort.Slice(writes, func(i, j int) bool { return writes[i].version < writes[j].version })
		over, last := map[string]bool{}, ""
		for _, w := range writes {
			if w.work == last {
				continue
			}
			if over[w.work] {
				s.problems = append(s.problems, fmt.Sprintf("%s: reconcile %s writes at version %d, after %s has begun", name, w.work, w.version, last))
			}
			if last != "" && processOf(last) != processOf(w.work) {
				s.moved++
			}
			over[last], last = true, w.work
		}
	}
}

// processOf returns the process of a reconcile.
func processOf(work string) string {
	id, _, _ := strings.Cut(work, "/")
	return id
}
