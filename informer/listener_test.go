package informer

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/leatproject/leat/api"
)

// counter returns a listener whose handler only counts, and a group with that number of notifications.
func counter(notifications int) (*processListener[*thing], *group[*thing]) {
	counted := 0
	l := newProcessListener("counter", func(api.Change[*thing]) { counted++ }, false, newWatchdog(0, nil), zap.NewNop())
	g := &group[*thing]{}
	for range notifications {
		g.changes = append(g.changes, added(&thing{name: "a"}))
	}
	return l, g
}

func TestDeliveringDoesNotAllocate(t *testing.T) {
	l, g := counter(1000)
	require.Zero(t, testing.AllocsPerRun(100, func() { l.deliver(t.Context(), g) }))
}

// BenchmarkDeliver delivers 1,000 notifications at a time.
func BenchmarkDeliver(b *testing.B) {
	l, g := counter(1000)
	b.ReportAllocs()
	for b.Loop() {
		l.deliver(b.Context(), g)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/delivery")
}
