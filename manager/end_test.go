package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/manager"
)

func TestErrorsNameFewRunnables(t *testing.T) {
	e := &manager.GraceError{Names: strings.Split("abcdefghijklm", ""), Period: time.Second}
	require.EqualError(t, e, "manager: a, b, c, d, e, f, g, h, i, j and 3 more did not end within 1s")
}

// TestGracePeriod ends managers whose runnables take ten minutes to end, in three groups.
func TestGracePeriod(t *testing.T) {
	for _, c := range []struct {
		period time.Duration
		took   time.Duration
		says   string
	}{
		{0, 30 * time.Second, "manager: worker, held did not end within 30s"},
		{time.Minute, time.Minute, "manager: worker, held did not end within 1m0s"},
		{15 * time.Minute, 15 * time.Minute, "manager: other did not end within 15m0s"},
		{21 * time.Minute, 20 * time.Minute, ""},
		{-1, 20 * time.Minute, ""},
		{manager.DoNotWait, 0, ""},
	} {
		t.Run(fmt.Sprint(c.period), func(t *testing.T) {
			inBubble(t, func(t *testing.T, j *journal) {
				m := newManager(t, manager.Options{GracePeriod: c.period})
				worker, held, other, cache := j.newPart("worker"), j.newHeld("held"), j.newPart("other"), j.newPart("cache")
				worker.linger, held.linger, other.linger = 10*time.Minute, 10*time.Minute, 10*time.Minute
				require.NoError(t, m.Add(worker, held))
				place(t, m, manager.Others, other)
				place(t, m, manager.Caches, cache)
				b := run(t, m)
				j.take()
				took, err := b.stop()
				require.Equal(t, c.took, took)
				if c.says == "" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, manager.ErrGracePeriod)
					require.EqualError(t, err, c.says)
				}
				ended := len(j.take())
				<-time.After(20 * time.Minute)
				require.Equal(t, 4, ended+len(j.take()), "Run stopped all runnables anyway")
			})
		})
	}
}

// boundedPart is a part that works until it has to end.
type boundedPart struct {
	part
	endBy *time.Time
}

func (p *boundedPart) EndBy(t time.Time) {
	p.endBy = &t
	p.linger = max(time.Until(t), 0)
}

// TestEndBy ends managers of a worker that takes a second to end, and of a recorder that takes as long as it may.
func TestEndBy(t *testing.T) {
	for _, c := range []struct {
		period time.Duration
		took   time.Duration // of the recorder, from the end of the manager's context; zero is no limit
	}{
		{0, 29 * time.Second}, {5 * time.Second, 4500 * time.Millisecond}, {time.Hour, time.Hour - time.Second}, {-1, 0},
	} {
		t.Run(fmt.Sprint(c.period), func(t *testing.T) {
			inBubble(t, func(t *testing.T, j *journal) {
				m := newManager(t, manager.Options{GracePeriod: c.period})
				worker, events := j.newPart("worker"), &boundedPart{part: *j.newPart("events")}
				worker.linger = time.Second
				require.NoError(t, m.Add(worker))
				place(t, m, manager.Servers, events)
				b := run(t, m)
				began := time.Now()
				took := must.Get(b.stop())(t)
				require.NotNil(t, events.endBy)
				if c.took == 0 {
					require.Zero(t, *events.endBy)
					require.Equal(t, time.Second, took)
					return
				}
				require.Equal(t, c.took, events.endBy.Sub(began))
				require.Equal(t, c.took, took)
			})
		})
	}
}

// TestEndByIsForTheEnd ends runnables for which Run does not wait: the manager gives them no time.
func TestEndByIsForTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		m := newManager(t, manager.Options{GracePeriod: manager.DoNotWait})
		removed, left := &boundedPart{part: *j.newPart("removed")}, &boundedPart{part: *j.newPart("left")}
		first := place(t, m, manager.Servers, removed)
		place(t, m, manager.Servers, left)
		b := run(t, m)
		first.Remove()
		<-first.Done()
		must.Get(b.stop())(t)
		synctest.Wait()
		require.Nil(t, removed.endBy)
		require.Nil(t, left.endBy)
	})
}

func TestLateErrorsAreLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		logs, seen := observer.New(zap.ErrorLevel)
		m := newManager(t, manager.Options{GracePeriod: time.Second, Logger: zap.New(logs)})
		worker := j.newPart("worker")
		worker.linger, worker.err = time.Minute, errors.New("boom")
		r := place(t, m, manager.Elected, worker)
		require.EqualError(t, must.Err(run(t, m).stop()), "manager: worker did not end within 1s")
		require.Zero(t, seen.Len())
		<-r.Done()
		require.Equal(t, "boom", seen.TakeAll()[0].ContextMap()["err"])
	})
}

// TestTheLeaseOutlivesTheLastWorker has a worker that exceeds the grace period. Run returns, but the lease is not
// released.
func TestTheLeaseOutlivesTheLastWorker(t *testing.T) {
	for _, period := range []time.Duration{time.Second, manager.DoNotWait, -1} {
		inBubble(t, func(t *testing.T, j *journal) {
			elector := j.newVote()
			close(elector.win)
			m := newManager(t, manager.Options{Elector: elector, GracePeriod: period})
			worker, held := j.newPart("worker"), j.newHeld("held")
			close(held.synced)
			worker.linger, held.linger = time.Minute, 2*time.Minute
			require.NoError(t, m.Add(worker, held))
			b := run(t, m)
			j.take()
			_, err := b.stop()
			switch period {
			case time.Second:
				require.EqualError(t, err, "manager: worker, held did not end within 1s")
				require.Empty(t, j.take())
			case manager.DoNotWait:
				require.NoError(t, err)
				require.Empty(t, j.take())
			}
			<-time.After(3 * time.Minute)
			require.Equal(t, []string{"end worker", "end held", "release"}, j.take())
		})
	}
}

// stuckVote is an Elector that does not end.
type stuckVote struct{ over chan struct{} }

func (v stuckVote) Run(context.Context, func(context.Context) error) error {
	<-v.over
	return nil
}

func TestAnElectorThatDoesNotEndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elector := stuckVote{make(chan struct{})}
		took, err := run(t, newManager(t, manager.Options{Elector: elector})).stop()
		require.EqualError(t, err, "manager: election did not end within 30s")
		require.Equal(t, 30*time.Second, took)
		close(elector.over)
	})
}

// TestLostLease loses the lease of managers whose worker ends slowly: while they lead, and while they wait for the
// worker. Run stops waiting.
func TestLostLease(t *testing.T) {
	gone := errors.New("the lease is lost")
	for _, period := range []time.Duration{0, -1} {
		for _, ending := range []bool{false, true} {
			t.Run(fmt.Sprint(period, ending), func(t *testing.T) {
				inBubble(t, func(t *testing.T, j *journal) {
					elector := j.newVote()
					close(elector.win)
					m := newManager(t, manager.Options{Elector: elector, GracePeriod: period})
					worker, held, cache := j.newPart("worker"), j.newHeld("held"), j.newPart("cache")
					close(held.synced)
					worker.linger = 20 * time.Second
					require.NoError(t, m.Add(worker, held))
					place(t, m, manager.Caches, cache)
					b := run(t, m)
					j.take()
					if ending {
						b.cancel()
						<-time.After(5 * time.Second)
					}
					elector.lose <- gone
					began := time.Now()
					err := <-b.ended
					require.Zero(t, time.Since(began))
					require.ErrorIs(t, err, gone)
					require.EqualError(t, err, "manager: no longer the leader: the lease is lost")
					<-time.After(20 * time.Second)
					require.ElementsMatch(t, []string{"end held", "end cache", "end worker", "lost"}, j.take(), "Run stopped all runnables anyway")
				})
			})
		}
	}
}

// TestReplicaThatDoesNotLeadWithdrawsAtOnce ends a replica that does not lead and whose runnable ends slowly. It must
// not become the leader meanwhile.
func TestReplicaThatDoesNotLeadWithdrawsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		m := newManager(t, manager.Options{Elector: j.newVote()})
		cold := j.newStubborn("cold")
		close(cold.synced)
		require.NoError(t, m.Add(cold))
		b := run(t, m)
		require.ElementsMatch(t, []string{"warm up cold", "campaign"}, j.take())
		b.cancel()
		require.Equal(t, []string{"withdraw"}, j.take())
		require.NoError(t, <-b.ended)
		require.Equal(t, []string{"end cold"}, j.take())
	})
}

// TestElectorsThatAreNotHelpful has electors that end without a reason, before they have led or after.
func TestElectorsThatAreNotHelpful(t *testing.T) {
	for says, elector := range map[string]electorFunc{
		"manager: election: manager: ended by itself, but other runnables need it": func(context.Context, func(context.Context) error) error {
			return nil
		},
		"manager: election: boom": func(context.Context, func(context.Context) error) error { return errors.New("boom") },
		"manager: no longer the leader: manager: the elector ended the leader's context": func(ctx context.Context, lead func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			time.AfterFunc(time.Second, cancel)
			return lead(ctx)
		},
		"manager: no longer the leader: context deadline exceeded": func(ctx context.Context, lead func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return lead(ctx)
		},
	} {
		inBubble(t, func(t *testing.T, j *journal) {
			m := newManager(t, manager.Options{Elector: elector})
			require.NoError(t, m.Add(j.newPart("worker")))
			require.EqualError(t, <-run(t, m).ended, says)
			require.Contains(t, []int{0, 2}, len(j.take()))
		})
	}
}

// TestElectorThatLeadsTwice calls lead twice at once.
func TestElectorThatLeadsTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		m := newManager(t, manager.Options{Elector: electorFunc(func(ctx context.Context, lead func(context.Context) error) error {
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { _ = lead(ctx) })
			}
			both.Wait()
			return nil
		})})
		require.NoError(t, m.Add(j.newPart("worker")))
		b := run(t, m)
		require.Equal(t, []string{"start worker"}, j.take())
		must.Get(b.stop())(t)
	})
}

type electorFunc func(context.Context, func(context.Context) error) error

func (f electorFunc) Run(ctx context.Context, lead func(context.Context) error) error {
	return f(ctx, lead)
}

// TestRunEndsInEveryState cancels a manager at each step of its start, and after the start.
func TestRunEndsInEveryState(t *testing.T) {
	states := []struct {
		name  string
		reach func(server, cache *slow, warm *heldPart, elector *vote)
		lines int // number of starts and ends, including the election
	}{
		{"before it runs", nil, 0},
		{"servers", func(*slow, *slow, *heldPart, *vote) {}, 2},
		{"caches", func(s, _ *slow, _ *heldPart, _ *vote) { close(s.synced) }, 4},
		{"warming up", func(s, c *slow, _ *heldPart, _ *vote) { close(s.synced); close(c.synced) }, 8},
		{"standing by", func(s, c *slow, w *heldPart, _ *vote) { close(s.synced); close(c.synced); close(w.synced) }, 10},
		{"leading", func(s, c *slow, w *heldPart, v *vote) {
			close(v.win)
			close(s.synced)
			close(c.synced)
			close(w.synced)
		}, 13},
	}
	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, j *journal) {
				elector := j.newVote()
				m := newManager(t, manager.Options{Elector: elector})
				server, cache, warm, other := j.newSlow("server"), j.newSlow("cache"), j.newHeld("warm"), j.newPart("other")
				place(t, m, manager.Servers, server)
				place(t, m, manager.Caches, cache)
				place(t, m, manager.Others, other)
				worker := place(t, m, manager.Elected, j.newPart("worker"))
				place(t, m, manager.WarmUp, warm)
				if state.reach == nil {
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					require.NoError(t, m.Run(ctx))
				} else {
					b := run(t, m)
					state.reach(server, cache, warm, elector)
					synctest.Wait()
					took := must.Get(b.stop())(t)
					require.Zero(t, took)
				}
				require.Len(t, j.take(), state.lines)
				<-worker.Done()
			})
		})
	}
}
