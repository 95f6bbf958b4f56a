package serve

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 1600, 1 << 20: 1600, 32 << 20: 200, 64 << 20: 100, 100 << 20: 64, 1 << 30: 50, math.MaxUint64: 50,
	} {
		require.Equal(t, want, percentFor(live), "%d bytes", live)
	}
}

func percentNow() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestCollectionsAreTuned holds a large heap, and waits for the collection that notices it.
func TestCollectionsAreTuned(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	runtime.GC()
	stop := tuneCollections()
	require.Greater(t, percentNow(), uint64(100), "the heap of a test is small")
	held := make([]byte, 300<<20)
	for percentNow() != leastPercent {
		runtime.GC()
		runtime.Gosched()
	}
	runtime.KeepAlive(held)
	stop()
	require.Equal(t, uint64(100), percentNow())
}

func TestTheUserDecidesAboutCollections(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "100")
			defer tuneCollections()()
			require.Equal(t, uint64(100), percentNow())
		})
	}
}
