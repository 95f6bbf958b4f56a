package slowcalls

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampledCalls simulates calls of a known duration, and records what the sampler does.
type sampledCalls struct {
	Sampler
	now      time.Time
	reads    int
	warnings []time.Duration
}

func newSampledCalls() *sampledCalls {
	p := &sampledCalls{now: time.Unix(1, 0)}
	p.Begin(p.now)
	return p
}

func (p *sampledCalls) calls(n int, each time.Duration) {
	for range n {
		p.now = p.now.Add(each)
		if !p.Count() {
			continue
		}
		p.reads++
		if took, warn := p.Measure(p.now); warn {
			p.warnings = append(p.warnings, took)
		}
	}
}

// TestSamplerReadsTheClockSeldomForQuickCalls has calls that take less time than a reading of the clock.
func TestSamplerReadsTheClockSeldomForQuickCalls(t *testing.T) {
	p := newSampledCalls()
	p.calls(127, time.Microsecond) // samples of 1, 2, 4, 8, 16, 32 and 64
	require.Equal(t, 7, p.reads)
	p.calls(640, time.Microsecond)
	require.Equal(t, 17, p.reads, "one in 64")
	require.Empty(t, p.warnings)
}

// TestSamplerFindsOneSlowCallAmongQuickOnes has a slow call in the middle of a sample.
func TestSamplerFindsOneSlowCallAmongQuickOnes(t *testing.T) {
	p := newSampledCalls()
	p.calls(200, time.Microsecond)
	p.calls(1, 2*time.Second)
	p.calls(63, time.Microsecond)
	require.Equal(t, []time.Duration{2*time.Second + 63*time.Microsecond}, p.warnings)
	p.calls(1000, time.Microsecond)
	p.calls(1, 2*time.Second)
	p.calls(63, time.Microsecond)
	require.Len(t, p.warnings, 1, "a minute has not passed")
	p.calls(1, time.Minute)
	p.calls(63, time.Microsecond)
	require.Len(t, p.warnings, 2)
}

// TestSamplerMeasuresEachCallUnlessCallsAreQuick has calls that are slow together, but not each by itself.
func TestSamplerMeasuresEachCallUnlessCallsAreQuick(t *testing.T) {
	p := newSampledCalls()
	p.calls(100, 2*time.Millisecond)
	require.Equal(t, 100, p.reads)
	p.calls(100, 99*time.Millisecond)
	require.Empty(t, p.warnings, "no call took 100 ms")
	p.calls(1, 101*time.Millisecond)
	require.Equal(t, []time.Duration{101 * time.Millisecond}, p.warnings)
}

// TestSamplerLimits has calls that take exactly the times at which a rule of the sampler ends.
func TestSamplerLimits(t *testing.T) {
	p := newSampledCalls()
	p.calls(1, quickSample)
	p.calls(2, quickSample/2)
	p.calls(4, quickSample/2)
	p.calls(1, time.Microsecond)
	require.Equal(t, 4, p.reads, "samples of 1, 2, 4 and 1")

	p = newSampledCalls()
	p.calls(1, slowCall)
	require.Empty(t, p.warnings)
	p.calls(1, slowCall+1)
	require.Len(t, p.warnings, 1)
	p.calls(1, pause)
	require.Len(t, p.warnings, 1)
	p.calls(1, slowCall+1)
	require.Len(t, p.warnings, 2)
}
