package slowcalls

import "time"

// Pending is the number of pending notifications from which on a Sampler is used. A handler with fewer is not behind.
const Pending = 1024

const (
	slowCall = 100 * time.Millisecond // a warning needs a call that takes longer than this,
	pause    = time.Minute            // and so much time since the last warning

	quickSample   = slowCall / 100 // a sample that takes no longer doubles the size of the next one,
	maxSampleSize = 64             // up to this number of calls
)

// Sampler finds slow calls without reading the clock at each call, which would cost more than the work of many
// handlers.
//
// Rule: it measures samples, which are consecutive calls. The first sample has one call. The size doubles after a quick
// sample and returns to one after any other sample. Reason: the quick calls of a sample hardly add to its time, so a
// sample that takes longer than slowCall has a slow call. Price: a slow call is found only at the end of its
// sample.
type Sampler struct {
	began  time.Time // when the sample began
	size   int       // the number of calls in the sample
	left   int       // the number of calls until the sample ends
	warned time.Time
}

// Begin starts a sample at the first call of a backlog.
func (s *Sampler) Begin(now time.Time) { s.start(now, 1) }

func (s *Sampler) start(now time.Time, size int) { s.began, s.size, s.left = now, size, size }

// Count counts a call and reports whether the sample has ended.
func (s *Sampler) Count() bool {
	s.left--
	return s.left == 0
}

// Measure ends a sample and starts the next one. It returns how long the sample took, and whether the caller should log
// a warning.
func (s *Sampler) Measure(now time.Time) (took time.Duration, warn bool) {
	took = now.Sub(s.began)
	size := 1
	if took <= quickSample {
		size = min(2*s.size, maxSampleSize)
	}
	s.start(now, size)
	warn = took > slowCall && now.Sub(s.warned) > pause
	if warn {
		s.warned = now
	}
	return took, warn
}
