package informer

import "time"

const (
	slowHandlerPending = 1024                   // a backlog is worth a warning from here on,
	slowHandlerCall    = 100 * time.Millisecond // if a single call takes so long;
	slowHandlerPause   = time.Minute            // but not more often than this

	quickStretch = slowHandlerCall / 100 // calls that take no longer together need not be looked at one by one,
	longestLook  = 64                    // but so many at the most go unseen
)

// pace notices a call that takes long. To read the clock at each call costs more than many a handler does, so it looks
// at stretches of calls: one call, then twice as many each time, for as long as they are quick, and one again if not.
// So a call that takes slowHandlerCall is seen as soon as the stretch ends that it is in, whose other calls hardly count.
type pace struct {
	began   time.Time // when the stretch did
	stretch int       // how many calls it has
	left    int       // how many of them are still to be made
	warned  time.Time
}

// begin starts with the first call of a backlog.
func (p *pace) begin(now time.Time) { p.start(now, 1) }

func (p *pace) start(now time.Time, stretch int) { p.began, p.stretch, p.left = now, stretch, stretch }

// look counts a call, and reports whether it is time to measure.
func (p *pace) look() bool {
	p.left--
	return p.left == 0
}

// measure ends the stretch and starts the next one. It returns how long it took, and whether that is worth a warning.
func (p *pace) measure(now time.Time) (took time.Duration, warn bool) {
	took = now.Sub(p.began)
	stretch := 1
	if took <= quickStretch {
		stretch = min(2*p.stretch, longestLook)
	}
	p.start(now, stretch)
	warn = took > slowHandlerCall && now.Sub(p.warned) > slowHandlerPause
	if warn {
		p.warned = now
	}
	return took, warn
}
