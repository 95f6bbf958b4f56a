package informer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/informer/internal/slowcalls"
	"github.com/leatproject/leat/internal/fixture/must"
)

// counter returns a listener whose handler only counts, and a group with that number of notifications.
func counter(notifications int) (*processListener[*thing], *group[*thing]) {
	counted := 0
	l := newProcessListener(HandlerOptions{}, func(api.Change[*thing]) { counted++ }, slowcalls.New(0, nil), zap.NewNop())
	l.start(context.Background(), nil)
	g := &group[*thing]{}
	for range notifications {
		g.changes = append(g.changes, added(&thing{name: "a"}))
	}
	return l, g
}

func TestDeliveringDoesNotAllocate(t *testing.T) {
	l, g := counter(1000)
	require.Zero(t, testing.AllocsPerRun(100, func() { l.deliver(g) }))
}

// unknown is a ListerWatcher that does not know its resource. It is never listed.
type unknown struct{ api.ListerWatcher[*thing] }

func (unknown) Collection() api.Collection { return api.Collection{Resource: api.Resource{}} }

// TestCrashOnPanic calls the function that a listener's goroutine calls, because a panic there would end the process.
func TestCrashOnPanic(t *testing.T) {
	for _, crash := range []bool{false, true} {
		i := New(unknown{}, Options[*thing]{Handling: Handling{CrashOnPanic: crash}})
		must.Get(i.Subscribe(func(api.Change[*thing]) { panic("a bug") }, HandlerOptions{}))(t)
		call := func() { pipelineOf(i).handlers.all[0].call(added(&thing{name: "a"})) }
		if crash {
			require.PanicsWithValue(t, "a bug", call)
		} else {
			require.NotPanics(t, call)
		}
	}
}

// BenchmarkDeliver delivers 1,000 notifications at a time.
func BenchmarkDeliver(b *testing.B) {
	l, g := counter(1000)
	b.ReportAllocs()
	for b.Loop() {
		l.deliver(g)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/delivery")
}
