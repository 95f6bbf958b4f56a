package informer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// paced makes calls that take a known time, and notes what pace does about them.
type paced struct {
	pace
	now      time.Time
	reads    int
	warnings []time.Duration
}

func newPaced() *paced {
	p := &paced{now: time.Unix(1, 0)}
	p.begin(p.now)
	return p
}

func (p *paced) calls(n int, each time.Duration) {
	for range n {
		p.now = p.now.Add(each)
		if !p.look() {
			continue
		}
		p.reads++
		if took, warn := p.measure(p.now); warn {
			p.warnings = append(p.warnings, took)
		}
	}
}

// TestPaceReadsTheClockSeldomForQuickCalls has calls for which the clock would be the greater part of the work.
func TestPaceReadsTheClockSeldomForQuickCalls(t *testing.T) {
	p := newPaced()
	p.calls(127, time.Microsecond) // stretches of 1, 2, 4, 8, 16, 32 and 64
	require.Equal(t, 7, p.reads)
	p.calls(640, time.Microsecond)
	require.Equal(t, 17, p.reads, "one in 64")
	require.Empty(t, p.warnings)
}

// TestPaceSeesOneSlowCallAmongQuickOnes has the slow call in the middle of a stretch.
func TestPaceSeesOneSlowCallAmongQuickOnes(t *testing.T) {
	p := newPaced()
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

// TestPaceTimesCallsOneByOneUnlessTheyAreQuick has calls that together are slow, and each by itself is not.
func TestPaceTimesCallsOneByOneUnlessTheyAreQuick(t *testing.T) {
	p := newPaced()
	p.calls(100, 2*time.Millisecond)
	require.Equal(t, 100, p.reads)
	p.calls(100, 99*time.Millisecond)
	require.Empty(t, p.warnings, "no call took 100 ms")
	p.calls(1, 101*time.Millisecond)
	require.Equal(t, []time.Duration{101 * time.Millisecond}, p.warnings)
}
