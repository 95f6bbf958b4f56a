package informer_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer"
	"github.com/leatproject/leat/internal/runstate"
)

// stuckTest is an informer in a bubble. Its handler takes as many seconds for an object as the object's size says.
type stuckTest struct {
	*testing.T
	source *source
	*informer.Informer[*widget]
	handler informer.Registration
	logs    *observer.ObservedLogs
	began   time.Time
	stop    func()
}

func runStuckTest(t *testing.T, after time.Duration, initial []int, test func(*stuckTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &stuckTest{T: t, source: newSource()}
		for n, seconds := range initial {
			b.source.set(fmt.Sprintf("w%d", n), seconds)
		}
		core, logs := observer.New(zap.WarnLevel)
		o := options(t)
		o.StuckAfter, o.MinWatchTimeout, o.Logger = after, 24*time.Hour, zap.New(core)
		b.Informer, b.logs, b.began = informer.New(b.source, o), logs, time.Now()
		b.handler = subscribe(t, b, func(n api.Change[*widget]) {
			if n.Object.Size > 0 {
				<-time.After(time.Duration(n.Object.Size) * time.Second)
			}
		}, informer.HandlerOptions{Name: "slow"})
		b.stop = running(t, b.Informer)
		test(b)
		b.stop()
	})
}

// pass lets time pass.
func (b *stuckTest) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// lines returns the log entries about stuck calls, each with its time.
func (b *stuckTest) lines() (lines []string) {
	for _, entry := range b.logs.All() {
		fields := entry.ContextMap()
		require.Equal(b, "slow", fields["handler"])
		require.Equal(b, "widgets.leat.test", fields["resource"])
		line := fmt.Sprintf("%s: %s, took %s", entry.Time.Sub(b.began), entry.Message, fields["took"])
		if pending, ok := fields["pending"]; ok {
			line += fmt.Sprintf(", pending %d", pending)
		}
		lines = append(lines, strings.ReplaceAll(line, "handler ", ""))
	}
	return lines
}

// TestStuckHandlerIsReported has a call that takes an hour while changes wait behind it, and then a call that takes
// four minutes.
func TestStuckHandlerIsReported(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		want  []string
	}{
		{"default", 0, []string{"6m0s: takes long, took 5m0s, pending 2", "1h1m0s: has returned, took 1h0m0s, pending 2"}},
		{"chosen", 7 * time.Second, []string{
			"1m7s: takes long, took 7s, pending 2", "1h1m0s: has returned, took 1h0m0s, pending 2",
			"1h1m7s: takes long, took 7s, pending 1", "1h5m0s: has returned, took 4m0s, pending 1",
		}},
		{"chosen, no whole number of checks", 6*time.Minute + 7, []string{
			"7m0.000000007s: takes long, took 6m0.000000007s, pending 2", "1h1m0s: has returned, took 1h0m0s, pending 2",
		}},
		{"so short that the first check is too early", 1, []string{
			"1m0.000000002s: takes long, took 2ns, pending 0", "1h1m0s: has returned, took 1h0m0s, pending 2",
			"1h1m0.000000002s: takes long, took 2ns, pending 1", "1h5m0s: has returned, took 4m0s, pending 1",
		}},
		{"never", -1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			runStuckTest(t, c.after, nil, func(b *stuckTest) {
				quick := subscribe(t, b, func(api.Change[*widget]) {}, informer.HandlerOptions{Name: "quick"})
				b.pass(time.Minute)
				b.source.set("a", 3600)
				b.pass(time.Second)
				b.source.set("b", 240)
				b.source.set("c", 0)
				b.pass(30 * time.Minute)
				status := b.Status().Handlers
				require.Equal(t, "slow", status[0].Name)
				require.Equal(t, 2, status[0].Pending)
				since := time.Time{}
				if c.want != nil {
					since = b.began.Add(time.Minute)
				}
				require.WithinDuration(t, since, status[0].StuckSince, 0)
				require.WithinDuration(t, since, b.handler.StuckSince(), 0)
				require.Zero(t, status[1].StuckSince)
				require.Zero(t, quick.StuckSince())
				b.pass(time.Hour)
				require.Equal(t, c.want, b.lines())
				require.Zero(t, b.handler.StuckSince())
				require.Zero(t, b.Status().Handlers[0].StuckSince)
			})
		})
	}
}

// TestSlowCallsAreNotStuck has many calls in one backlog that take a minute each, and then one stuck call among them.
// The reported start of the stuck call may be late by the time between two checks of the watchdog.
func TestSlowCallsAreNotStuck(t *testing.T) {
	minutes := make([]int, 40)
	for n := range minutes {
		minutes[n] = 61
	}
	runStuckTest(t, 0, minutes, func(b *stuckTest) {
		b.pass(time.Hour)
		require.Empty(t, b.lines())
		require.Zero(t, b.handler.StuckSince())
		require.True(t, runstate.IsClosed(b.handler.Synced()))
	})
	minutes = append(minutes, 3600)
	runStuckTest(t, 0, minutes, func(b *stuckTest) {
		b.pass(2 * time.Hour)
		logged := b.logs.All()
		require.Len(t, logged, 2, b.lines())
		began := logged[1].Time.Add(-time.Hour)
		require.WithinDuration(t, began.Add(5*time.Minute), logged[0].Time, 5*time.Second)
		require.InDelta(t, time.Hour, logged[1].ContextMap()["took"].(time.Duration), float64(5*time.Second))
	})
}

// TestStuckInTheMiddleOfABacklog has quick calls before and after the stuck calls, in the time between two checks of
// the watchdog.
func TestStuckInTheMiddleOfABacklog(t *testing.T) {
	runStuckTest(t, 0, nil, func(b *stuckTest) {
		b.pass(time.Minute)
		b.source.set("first", 1)
		b.pass(0)
		for n := range 100 {
			b.source.set(fmt.Sprint("quick", n), 0)
		}
		for _, name := range []string{"a", "b"} {
			b.source.set(name, 1800)
		}
		for n := range 100 {
			b.source.set(fmt.Sprint("late", n), 0)
		}
		b.pass(2 * time.Hour)
		require.Equal(t, []string{
			"6m1s: takes long, took 5m0s, pending 101", "31m1s: has returned, took 30m0s, pending 101",
			"36m1s: takes long, took 5m0s, pending 100", "1h1m1s: has returned, took 30m0s, pending 100",
		}, b.lines())
	})
}

// TestStuckHandlerIsRemoved removes the handler, or ends its informer, while a call is stuck. The log must report its
// return.
func TestStuckHandlerIsRemoved(t *testing.T) {
	for name, leave := range map[string]func(*stuckTest){
		"removed": func(b *stuckTest) {
			b.handler.Remove()
			<-b.handler.Done()
		},
		"ended": func(b *stuckTest) { b.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			runStuckTest(t, 0, []int{3600}, func(b *stuckTest) {
				b.pass(30 * time.Minute)
				require.Len(t, b.lines(), 1)
				leave(b)
				require.Zero(t, b.handler.StuckSince())
				require.Len(t, b.lines(), 2)
				require.Equal(t, "1h0m0s: has returned, took 1h0m0s, pending 0", b.lines()[1])
			})
		})
	}
}

// TestEndWaitsForAStuckHandler ends an informer while a call is in flight that is reported only later. The log must
// still say why Run waits.
func TestEndWaitsForAStuckHandler(t *testing.T) {
	runStuckTest(t, 0, []int{3600}, func(b *stuckTest) {
		b.pass(time.Minute)
		b.stop()
		require.Equal(t, []string{"5m0s: takes long, took 5m0s, pending 0", "1h0m0s: has returned, took 1h0m0s, pending 0"}, b.lines())
	})
}

// TestStuckHandlersAreReportedSeparately has several handlers that join and are called at different times. One of them
// panics at the end.
func TestStuckHandlersAreReportedSeparately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		o := options(t)
		o.StuckAfter, o.MinWatchTimeout, o.Logger = time.Minute, 24*time.Hour, zap.New(core)
		s := newSource()
		s.set("a", 1)
		i := informer.New(s, o)
		defer running(t, i)()
		began := time.Now()
		for n, takes := range []int{100, 50, 120, 200} {
			subscribe(t, i, func(api.Change[*widget]) {
				<-time.After(time.Duration(takes) * time.Second)
				if n == 2 {
					panic("too late")
				}
			}, informer.HandlerOptions{Name: fmt.Sprint(n)})
			<-time.After(1234 * time.Millisecond)
		}
		<-time.After(10 * time.Minute)
		var lines []string
		for _, entry := range logs.All() {
			lines = append(lines, fmt.Sprint(entry.Time.Sub(began), " ", entry.ContextMap()["handler"], " ", entry.Message))
		}
		require.Equal(t, []string{
			"1m0s 0 handler takes long", "1m2.468s 2 handler takes long", "1m3.702s 3 handler takes long",
			"1m40s 0 handler has returned", "2m2.468s 2 handler panicked", "2m2.468s 2 handler has returned",
			"3m23.702s 3 handler has returned",
		}, lines)
	})
}

// TestRunWaitsForTheWatchdog ends an informer while the watchdog logs. No log entry may follow the end of Run.
func TestRunWaitsForTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, release := make(chan struct{}), make(chan struct{})
		o := options(t)
		core, _ := observer.New(zap.WarnLevel)
		o.Logger = zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
			if e.Message == "handler takes long" {
				close(logs)
				<-release
			}
			return nil
		}))
		s := newSource()
		s.set("a", 1)
		i := informer.New(s, o)
		subscribe(t, i, func(api.Change[*widget]) { <-time.After(time.Hour) }, informer.HandlerOptions{})
		stop := running(t, i)
		<-logs
		ended := make(chan struct{})
		go func() {
			stop()
			close(ended)
		}()
		<-time.After(2 * time.Hour)
		require.False(t, runstate.IsClosed(ended))
		close(release)
		<-ended
	})
}
