package informer

import "time"

const (
	slowHandlerPending = 1024                   // a warning needs so many pending notifications,
	slowHandlerCall    = 100 * time.Millisecond // and a call that takes longer than this,
	slowHandlerPause   = time.Minute            // and so much time since the last warning

	quickSample   = slowHandlerCall / 100 // a sample that takes no longer doubles the size of the next one,
	maxSampleSize = 64                    // up to this number of calls
)

// callSampler finds slow calls without reading the clock at each call, which would cost more than the work of many
// handlers.
//
// Rule: it measures samples, which are consecutive calls. The first sample has one call. The size doubles after a quick
// sample and returns to one after any other sample. Reason: the quick calls of a sample hardly add to its time, so a
// sample that takes longer than slowHandlerCall has a slow call. Price: a slow call is found only at the end of its
// sample.
type callSampler struct {
	began  time.Time // when the sample began
	size   int       // the number of calls in the sample
	left   int       // the number of calls until the sample ends
	warned time.Time
}

// begin starts a sample at the first call of a backlog.
func (s *callSampler) begin(now time.Time) { s.start(now, 1) }

func (s *callSampler) start(now time.Time, size int) { s.began, s.size, s.left = now, size, size }

// count counts a call and reports whether the sample has ended.
func (s *callSampler) count() bool {
	s.left--
	return s.left == 0
}

// measure ends a sample and starts the next one. It returns how long the sample took, and whether the caller should log
// a warning.
func (s *callSampler) measure(now time.Time) (took time.Duration, warn bool) {
	took = now.Sub(s.began)
	size := 1
	if took <= quickSample {
		size = min(2*s.size, maxSampleSize)
	}
	s.start(now, size)
	warn = took > slowHandlerCall && now.Sub(s.warned) > slowHandlerPause
	if warn {
		s.warned = now
	}
	return took, warn
}
