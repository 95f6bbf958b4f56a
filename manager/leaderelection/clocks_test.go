package leaderelection_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/fixture"
	"github.com/leatproject/leat/testserver"
)

// These are the times of the lease. One clock may run 1.5 times as fast as another, which is
// LeaseDuration/RenewDeadline.
const (
	nominalLease    = 60 * time.Second
	nominalDeadline = 40 * time.Second
	nominalRetry    = 6 * time.Second
)

// TestClockRates runs four replicas for hours. Their wall clocks differ by hours and jump, and their clocks run at
// different rates. Replicas are killed, stopped (as by SIGSTOP) and disconnected, and get late answers. At most one may
// lead at a time, up to the documented ratio of rates.
func TestClockRates(t *testing.T) {
	terms := 0
	for seed := range uint64(3) {
		bubble(t, func(t *testing.T, s *testserver.Server) {
			e := newElection(t, s, seed, 1.2, 1, 0.8)
			e.run()
			require.Empty(t, e.overlaps, "seed %d", seed)
			terms += e.terms
		})
	}
	require.Greater(t, terms, 25)
}

// TestClockRateBoundIsExact disconnects a leader with a slow clock while a replica with a fast clock waits. Beyond the
// documented ratio two replicas lead, so TestClockRates would notice a larger ratio.
func TestClockRateBoundIsExact(t *testing.T) {
	for name, tc := range map[string]struct {
		slow, fast float64
		two        bool
	}{
		"at the bound":     {0.8, 1.2, false},
		"beyond the bound": {0.75, 1.5, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *testserver.Server) {
				e := newElection(t, s, 0, tc.slow, tc.fast)
				defer e.end()
				leader := e.start()
				<-leader.Elected()
				follower := e.start()
				<-time.After(3 * time.Minute)
				leader.Set(fixture.CutOff)
				<-follower.Elected()
				<-time.After(time.Minute)
				e.end()
				require.Equal(t, 2, e.terms)
				require.Equal(t, tc.two, len(e.overlaps) > 0, "%v", e.overlaps)
			})
		})
	}
}

// election is a set of replicas for one seed, with a record of their writes.
type election struct {
	t      *testing.T
	server *testserver.Server
	rates  []float64
	all    []*process

	mu       sync.Mutex // guards the fields below
	rand     *rand.Rand
	former   map[string]bool
	last     string // the last writer
	lastAt   time.Time
	terms    int
	overlaps []string
}

func newElection(t *testing.T, s *testserver.Server, seed uint64, rates ...float64) *election {
	return &election{t: t, server: s, rand: rand.New(rand.NewPCG(seed, 0)), rates: rates}
}

// run makes forty disturbances of four replicas, and requires a leader after that.
func (e *election) run() {
	defer e.end()
	var running []*process
	for range 4 {
		running = append(running, e.start())
	}
	for range 40 {
		<-time.After(time.Duration(e.number(0, 150)) * time.Second)
		i := e.number(0, len(running))
		for j, p := range running {
			if e.number(0, 2) == 0 && p.Leading() {
				i = j
			}
		}
		e.disturb(running[i])
		e.replaceEnded(running)
	}
	for _, p := range running {
		p.Set(fixture.Connected)
	}
	<-time.After(time.Minute)
	e.replaceEnded(running)
	<-time.After(5 * time.Minute)
	e.requireLeader()
}

// write records a write that only a leader may make. A replica must not write after another one has.
func (e *election) write(identity string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastAt = time.Now()
	if e.last == identity {
		return
	}
	if e.former[identity] {
		e.overlaps = append(e.overlaps, fmt.Sprintf("%s writes after %s, which followed it", identity, e.last))
		return
	}
	if e.former == nil {
		e.former = map[string]bool{}
	}
	e.former[e.last] = true
	e.last = identity
	e.terms++
}

func (e *election) requireLeader() {
	e.mu.Lock()
	defer e.mu.Unlock()
	require.Less(e.t, time.Since(e.lastAt), 10*time.Second, "no replica leads although nothing is disturbed")
}

// end ends all processes.
func (e *election) end() {
	for _, p := range e.all {
		p.end()
	}
}

// number returns a random number n with from ≤ n < to.
func (e *election) number(from, to int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return from + e.rand.IntN(to-from)
}

// disturb makes one random disturbance of a replica.
func (e *election) disturb(p *process) {
	d := time.Duration(e.number(0, 90)) * time.Second
	switch e.number(0, 5) {
	case 0:
		p.Set(fixture.Killed)
	case 1:
		p.Set(fixture.Stopped)
		time.AfterFunc(d, func() { p.Set(fixture.Connected) })
	case 2:
		p.Set(fixture.CutOff)
		time.AfterFunc(d, func() { p.Set(fixture.Connected) })
	case 3:
		p.Set(fixture.Late) // and then disconnected: the late last answer must not make the lease longer
		time.AfterFunc(d, func() { p.Set(fixture.CutOff) })
		time.AfterFunc(d+2*time.Minute, func() { p.Set(fixture.Connected) })
	default:
		p.stop()
	}
}

// replaceEnded starts a replica for each that has ended or was killed.
func (e *election) replaceEnded(running []*process) {
	for i, p := range running {
		if p.hasEnded() {
			running[i] = e.start()
		}
	}
}
