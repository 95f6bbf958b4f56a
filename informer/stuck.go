package informer

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultStuckAfter = 5 * time.Minute // as for reconciles

	// looks is how often a watchdog looks within StuckAfter, which bounds the error of the times that it reports.
	looks = 60
)

// watchdog reports calls of handlers that take longer than StuckAfter. It has no goroutine. It has one timer, which
// runs only while a handler is called and not reported.
//
// Rule: a listener notes the time when it takes a backlog, and again before its first call after each look of the
// watchdog. Reason: reading the clock before each call would cost more than the work of many handlers; comparing the
// number of a look costs a nanosecond. Price: a call may have begun later than its note, by at most the time between
// two looks. The note is exact if the calls before it in its backlog were quick.
type watchdog struct {
	after time.Duration    // negative for never
	epoch time.Time        // the notes are nanoseconds since then, and positive
	calls func() []*inCall // of all listeners

	number atomic.Int64 // of the last look; a listener compares it before each call
	armed  atomic.Bool  // the timer runs

	running sync.WaitGroup // the timer, or its function
	mu      sync.Mutex     // guards the fields below
	timer   *time.Timer
	looked  int64 // when it looked last; 0 before its first look since it was armed
	stopped bool
}

func newWatchdog(after time.Duration, calls func() []*inCall) *watchdog {
	if after == 0 {
		after = defaultStuckAfter
	}
	return &watchdog{after: after, epoch: time.Now().Add(-1), calls: calls}
}

func (w *watchdog) period() time.Duration { return max(w.after/looks, 1) }

// since returns the note of a time.
func (w *watchdog) since(t time.Time) int64 { return int64(t.Sub(w.epoch)) }

// time returns the time of a note. The note of a reported call is negative.
func (w *watchdog) time(at int64) time.Time { return w.epoch.Add(time.Duration(max(at, -at))) }

// arm starts the timer if it does not run.
func (w *watchdog) arm() {
	if w.after < 0 || w.armed.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.armed.Load() {
		w.looked = 0
		w.start(w.period())
	}
}

// start starts the timer. The lock is held.
func (w *watchdog) start(d time.Duration) {
	if w.stopped {
		return
	}
	w.armed.Store(true)
	w.running.Add(1)
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.look)
	} else {
		w.timer.Reset(d)
	}
}

// stop ends the watchdog. When it returns, the timer's function has returned too.
func (w *watchdog) stop() {
	w.mu.Lock()
	w.stopped = true
	if w.timer != nil && w.timer.Stop() {
		w.running.Done()
	}
	w.mu.Unlock()
	w.running.Wait()
}

// look reports the calls that take long. The timer runs on if there are others.
func (w *watchdog) look() {
	defer w.running.Done()
	for _, c := range w.find() {
		c.begun(c.took)
	}
}

// longCall is a call that takes long.
type longCall struct {
	*inCall
	took time.Duration
}

// find marks the calls that take long as reported, and returns them. A call that its listener did not note again
// after the last look began before that look, so one note that is old does not make a quick call a long one.
func (w *watchdog) find() (long []longCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed.Store(false) // first, so that a listener that is not seen below arms the watchdog again
	now, next := w.since(time.Now()), time.Duration(0)
	w.number.Add(1) // after now, so that notes which know of this look are not older
	for _, c := range w.calls() {
		at := c.at.Load()
		if at <= 0 {
			continue
		}
		took := time.Duration(now - at)
		if took >= w.after && at < w.looked && c.at.CompareAndSwap(at, -at) {
			long = append(long, longCall{c, took})
			continue
		}
		next = cmp.Or(next, w.period())
		if took < w.after {
			next = min(next, w.after-took)
		}
	}
	w.looked = now
	if next > 0 {
		w.start(next)
	}
	return long
}

// inCall is the note of one listener. All fields except at belong to the listener's goroutine.
type inCall struct {
	dog   *watchdog
	begun func(took time.Duration) // reports a call that takes long,
	ended func(took time.Duration) // and its return

	seen int64        // the number of the last look that the goroutine has seen
	at   atomic.Int64 // the note of the call in flight; 0 without a call, negative if it is reported
}

// begin notes that calls begin now.
func (c *inCall) begin(now time.Time) {
	c.seen = c.dog.number.Load()
	c.note(c.dog.since(now))
	c.dog.arm()
}

// next is called before each call.
func (c *inCall) next() {
	if c.seen != c.dog.number.Load() {
		c.begin(time.Now())
	}
}

// end notes that no call is in flight.
func (c *inCall) end() { c.note(0) }

// note replaces the note. If the call before was reported, its return is reported too.
func (c *inCall) note(at int64) {
	if before := c.at.Swap(at); before < 0 {
		c.ended(time.Since(c.dog.time(before)))
	}
}

// stuckSince returns when the call in flight began if it is reported, and otherwise the zero time.
func (c *inCall) stuckSince() time.Time {
	if at := c.at.Load(); at < 0 {
		return c.dog.time(at)
	}
	return time.Time{}
}
