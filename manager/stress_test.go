package manager_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/manager"
)

// TestComingAndGoing has five goroutines that add and remove parts of every group at any moment, while the manager
// starts, is elected and ends.
func TestComingAndGoing(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { comeAndGo(t, seed) })
		})
	}
}

func comeAndGo(t *testing.T, seed uint64) {
	var j journal
	elector := j.newVote()
	m := newManager(t, manager.Options{Elector: elector})
	var people sync.WaitGroup
	var mu sync.Mutex
	var all []*manager.RunnableRegistration
	for person := range 5 {
		people.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(person)))
			for i := range 20 {
				<-time.After(time.Duration(r.IntN(2000)) * time.Millisecond)
				group := manager.Group(r.IntN(int(manager.Elected)) + 1)
				part := j.newHeld(fmt.Sprintf("%s-%d-%d", group, person, i))
				part.linger = time.Duration(r.IntN(1000)) * time.Millisecond
				if r.IntN(3) > 0 {
					close(part.synced)
				} else {
					time.AfterFunc(time.Duration(r.IntN(3000))*time.Millisecond, func() { close(part.synced) })
				}
				registration, err := m.AddWith(part, manager.Placement{Group: group})
				if err != nil {
					return
				}
				mu.Lock()
				all = append(all, registration)
				victim := all[r.IntN(len(all))]
				mu.Unlock()
				if r.IntN(2) == 0 {
					victim.Remove()
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, 99))
	<-time.After(time.Duration(r.IntN(3000)) * time.Millisecond)
	b := run(t, m)
	time.AfterFunc(time.Duration(r.IntN(10000))*time.Millisecond, func() { close(elector.win) })
	<-time.After(time.Duration(r.IntN(20000)) * time.Millisecond)
	took, err := b.stop()
	require.NoError(t, err)
	require.LessOrEqual(t, took, 4*time.Second, "four groups, each within a second")
	people.Wait()
	for _, registration := range all {
		require.True(t, runstate.IsClosed(registration.Done()), registration.Name())
		require.NoError(t, registration.Err())
	}
	requireOrder(t, j.take())
	<-time.After(3 * time.Second) // for the remaining timers
}

// requireOrder checks that every part that started has ended, and that parts of the leader had the lease from their
// first moment to the last.
func requireOrder(t *testing.T, lines []string) {
	t.Helper()
	alive, working := map[string]bool{}, map[string]bool{}
	campaigning := false
	for _, line := range lines {
		switch verb, name, _ := strings.Cut(line, " "); {
		case line == "campaign":
			campaigning = true
		case line == "release", line == "withdraw":
			campaigning = false
			require.Empty(t, working, "without the lease")
		case verb == "warm":
			alive[strings.TrimPrefix(name, "up ")] = true
		case verb == "start":
			alive[name] = true
			if strings.HasPrefix(name, "elected") || strings.HasPrefix(name, "warm-up") {
				require.True(t, campaigning, "%s without the lease", name)
				working[name] = true
			}
		case verb == "end":
			name = strings.TrimPrefix(name, "cold ")
			require.True(t, alive[name], line)
			delete(alive, name)
			delete(working, name)
		}
	}
	require.Empty(t, alive)
	require.False(t, campaigning)
}
