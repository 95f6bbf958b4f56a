package manager_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/internal/fixture/must"
	"github.com/leatproject/leat/internal/runstate"
	"github.com/leatproject/leat/manager"
)

// TestOrderOfStartAndEnd opens each gate only after it has checked that no runnable passed it before.
func TestOrderOfStartAndEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		elector := j.newVote()
		m := newManager(t, manager.Options{Elector: elector})
		server, cache, warm := j.newSlow("server"), j.newSlow("cache"), j.newHeld("warm")
		worker, other := j.newPart("worker"), j.newSlow("other") // no other runnable waits for it
		worker.linger, warm.linger, other.linger, cache.linger = 5*time.Second, 7*time.Second, time.Second, time.Second
		require.NoError(t, m.Add(worker, warm)) // the order of adds does not matter
		place(t, m, manager.Others, other)
		place(t, m, manager.Caches, cache)
		place(t, m, manager.Servers, server)
		b := run(t, m)
		require.Equal(t, []string{"start server"}, j.take())
		close(server.synced)
		require.Equal(t, []string{"start cache"}, j.take())
		close(cache.synced)
		require.Equal(t, []string{"start other", "warm up warm"}, sorted(j.take(), "start other"))
		close(warm.synced)
		require.Equal(t, []string{"campaign"}, j.take())
		require.False(t, runstate.IsClosed(m.Elected()))
		close(elector.win)
		require.ElementsMatch(t, []string{"start worker", "start warm"}, j.take())
		require.True(t, runstate.IsClosed(m.Elected()))

		took := must.Get(b.stop())(t)
		require.Equal(t, 9*time.Second, took, "groups that end together take as long as the slowest")
		require.Equal(t, []string{"end worker", "end warm", "release", "end other", "end cache", "end server"}, j.take())
	})
}

// everywhere is a part that works on every replica.
type everywhere struct{ part }

func (*everywhere) NeedLeaderElection() bool { return false }

// TestARunnableWorksOnlyOnTheLeader adds a function without a placement, and two parts for every replica.
func TestARunnableWorksOnlyOnTheLeader(t *testing.T) {
	for _, leads := range []bool{true, false} {
		inBubble(t, func(t *testing.T, j *journal) {
			elector := j.newVote()
			m := newManager(t, manager.Options{Elector: elector})
			controller := j.newHeld("controller")
			close(controller.synced)
			require.NoError(t, m.Add(manager.Func(j.newPart("function").Run), controller, &everywhere{*j.newPart("service")}))
			place(t, m, manager.Others, manager.Func(j.newPart("placed").Run))
			b := run(t, m)
			require.ElementsMatch(t, []string{"start service", "start placed", "warm up controller", "campaign"}, j.take())
			if leads {
				close(elector.win)
				require.ElementsMatch(t, []string{"start controller", "start function"}, j.take())
			}
			must.Get(b.stop())(t)
			lines := j.take()
			if !leads {
				require.ElementsMatch(t, []string{"withdraw", "end cold controller", "end service", "end placed"}, lines)
				return
			}
			require.Len(t, lines, 5)
			require.ElementsMatch(t, []string{"end controller", "end function"}, lines[:2])
			require.Equal(t, "release", lines[2])
			require.ElementsMatch(t, []string{"end service", "end placed"}, lines[3:])
		})
	}
}

// sorted moves a line to the front if it exists. Lines of the same moment have no order.
func sorted(lines []string, first string) []string {
	for i, line := range lines {
		if line == first {
			lines[0], lines[i] = lines[i], lines[0]
		}
	}
	return lines
}

func TestWithoutAnElectorEveryReplicaLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		m := newManager(t, manager.Options{})
		cold := j.newHeld("cold")
		require.NoError(t, m.Add(cold, j.newPart("worker")))
		b := run(t, m)
		require.ElementsMatch(t, []string{"warm up cold", "start cold", "start worker"}, j.take(), "there is no other leader")
		require.True(t, runstate.IsClosed(m.Elected()))
		must.Get(b.stop())(t)
	})
}

// TestAddWhileRunning adds to groups that have started, and to groups that have not.
func TestAddWhileRunning(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		elector := j.newVote()
		m := newManager(t, manager.Options{Elector: elector})
		cache := j.newSlow("cache")
		place(t, m, manager.Caches, cache)
		b := run(t, m)
		require.Equal(t, []string{"start cache"}, j.take())
		second := j.newSlow("second")
		place(t, m, manager.Caches, second)
		place(t, m, manager.Servers, j.newPart("server"))
		place(t, m, manager.Others, j.newPart("other"))
		require.ElementsMatch(t, []string{"start second", "start server"}, j.take())
		close(cache.synced)
		require.Empty(t, j.take(), "the manager waits for a runnable that was added in time")
		close(second.synced)
		require.ElementsMatch(t, []string{"start other", "campaign"}, j.take())

		require.NoError(t, m.Add(j.newPart("worker"), j.newHeld("held")))
		place(t, m, manager.Caches, j.newSlow("late"))
		require.ElementsMatch(t, []string{"warm up held", "start late"}, j.take())
		close(elector.win)
		require.ElementsMatch(t, []string{"start worker", "start held"}, j.take())
		require.NoError(t, m.Add(j.newPart("another"), j.newHeld("hot")))
		require.ElementsMatch(t, []string{"start another", "warm up hot", "start hot"}, j.take())

		b.cancel()
		synctest.Wait()
		require.ErrorIs(t, m.Add(j.newPart("too late")), manager.ErrStopped)
		require.NoError(t, <-b.ended)
		require.ErrorIs(t, m.Add(j.newPart("too late")), manager.ErrStopped)
		require.ErrorIs(t, m.Run(t.Context()), manager.ErrRunning)
	})
}

func TestNames(t *testing.T) {
	var j journal
	m := newManager(t, manager.Options{Elector: j.newVote()})
	first := j.newPart("first")
	require.NoError(t, m.Add(first))
	require.ErrorIs(t, m.Add(first), manager.ErrTwice)
	require.ErrorIs(t, m.Add(j.newPart("first")), manager.ErrNameTaken)
	require.ErrorIs(t, m.Add(j.newPart("election")), manager.ErrNameTaken)
	must.Get(m.AddWith(j.newPart("first"), manager.Placement{Name: "second"}))(t)
	nothing := func(context.Context) error { return nil }
	for _, want := range []string{"manager.Func", "manager.Func #2", "manager.Func #3"} {
		r := must.Get(m.AddWith(manager.Func(nothing), manager.Placement{}))(t)
		require.Equal(t, want, r.Name())
		require.Equal(t, manager.Elected, r.Group())
	}
	require.ErrorContains(t, must.Err(m.AddWith(manager.Func(nothing), manager.Placement{Group: manager.WarmUp})), "no method RunHeld")
	for _, g := range []manager.Group{-1, manager.Elected + 1, manager.Elected + 2} {
		require.ErrorContains(t, must.Err(m.AddWith(manager.Func(nothing), manager.Placement{Group: g})), "which does not exist")
	}
	require.Panics(t, func() { _ = m.Add(nil) })
}

// TestAFailureEndsEverything makes one part fail in every way, at every time.
func TestAFailureEndsEverything(t *testing.T) {
	boom := errors.New("boom")
	fails := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for _, c := range []struct {
		name  string
		group manager.Group
		run   func(context.Context) error
		is    error
		says  string
	}{
		{"an error", manager.Elected, fails(boom), boom, "manager: bad: boom"},
		{"a context that was not its own", manager.Others, fails(context.Canceled), context.Canceled, "manager: bad: context canceled"},
		{"a panic", manager.Others, func(context.Context) error { panic("ouch") }, nil, "manager: bad: panic: ouch [recovered]"},
		{"goexit", manager.Others, func(context.Context) error { runtime.Goexit(); return nil }, nil, "manager: bad: manager: runtime.Goexit was called"},
		{"a server that ends", manager.Servers, fails(nil), manager.ErrEnded, "bad: manager: ended by itself"},
		{"a cache that ends", manager.Caches, fails(nil), manager.ErrEnded, "bad: manager: ended by itself"},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/late=%v", c.name, late), func(t *testing.T) {
				inBubble(t, func(t *testing.T, j *journal) {
					logs, seen := observer.New(zap.ErrorLevel)
					m := newManager(t, manager.Options{Logger: zap.New(logs)})
					place(t, m, manager.Servers, j.newPart("server"))
					bad := manager.Func(func(ctx context.Context) error {
						if late {
							<-time.After(time.Minute)
						}
						return c.run(ctx)
					})
					must.Get(m.AddWith(bad, manager.Placement{Name: "bad", Group: c.group}))(t)
					require.NoError(t, m.Add(j.newPart("worker")))
					b := run(t, m)
					err := <-b.ended
					require.ErrorContains(t, err, c.says)
					for _, entry := range seen.All() {
						require.Contains(t, entry.ContextMap()["stack"], "manager_test.go", "the place of the panic")
					}
					require.Equal(t, c.name == "a panic", seen.Len() == 1)
					if c.is != nil {
						require.ErrorIs(t, err, c.is)
					}
					lines := j.take()
					require.Equal(t, "end server", lines[len(lines)-1])
					require.Len(t, lines, len(lines)/2*2, "every part that started has ended")
				})
			})
		}
	}
}

func TestRunnableThatIsDoneEndsNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		m := newManager(t, manager.Options{})
		other, worker := j.newPart("other"), j.newPart("worker")
		other.fail, worker.fail = make(chan struct{}), make(chan struct{})
		place(t, m, manager.Others, other)
		r := place(t, m, manager.Elected, worker)
		b := run(t, m)
		close(other.fail)
		close(worker.fail)
		<-r.Done()
		require.NoError(t, r.Err())
		<-time.After(time.Hour)
		require.Empty(t, b.ended)
		require.NoError(t, m.Add(j.newPart("worker")), "its name is free")
		must.Get(b.stop())(t)
	})
}

// TestErrorsAreJoined has three parts: one fails first, one fails at the end, and one returns a cancellation.
func TestErrorsAreJoined(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		m := newManager(t, manager.Options{})
		first, second, third := j.newPart("first"), j.newPart("second"), j.newPart("third")
		first.fail, first.err = make(chan struct{}), errors.New("boom")
		second.err, second.linger = errors.New("not flushed"), time.Second
		third.err = fmt.Errorf("third: %w", context.Canceled)
		require.NoError(t, m.Add(first, second, third))
		b := run(t, m)
		close(first.fail)
		require.EqualError(t, <-b.ended, "manager: first: boom\nmanager: second: not flushed")
	})
}

func TestRemove(t *testing.T) {
	inBubble(t, func(t *testing.T, j *journal) {
		logs, seen := observer.New(zap.InfoLevel)
		m := newManager(t, manager.Options{Logger: zap.New(logs)})
		early := place(t, m, manager.Others, j.newPart("early"))
		early.Remove()
		<-early.Done()
		cache := place(t, m, manager.Caches, j.newSlow("cache"))
		var self *manager.RunnableRegistration
		self = place(t, m, manager.Elected, manager.Func(func(ctx context.Context) error {
			self.Remove()
			<-ctx.Done()
			return ctx.Err()
		}))
		broken := j.newPart("broken")
		broken.err = errors.New("boom")
		failing := place(t, m, manager.Elected, broken)
		b := run(t, m)
		require.Equal(t, []string{"start cache"}, j.take())
		cache.Remove() // the manager no longer waits for it, and it may end
		<-cache.Done()
		require.Equal(t, []string{"end cache", "start broken"}, j.take())
		<-self.Done()
		require.NoError(t, self.Err())
		failing.Remove()
		failing.Remove()
		<-failing.Done()
		require.EqualError(t, failing.Err(), "boom")
		require.Equal(t, 1, seen.FilterMessage("runnable failed after it was stopped").Len())
		require.Empty(t, b.ended)
		require.NoError(t, m.Add(j.newPart("broken"), j.newPart("early")))
		must.Get(b.stop())(t)
		failing.Remove()
	})
}
