package slowcalls

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultStuckAfter = 5 * time.Minute // as in package controller

	// checksPerPeriod is the number of checks of a watchdog within that time. It bounds the error of the reported
	// times.
	checksPerPeriod = 60
)

// Watchdog reports calls of handlers that take longer than a given time. It has no goroutine. It has one timer, which
// runs only while a handler is called and not reported.
//
// Rule: a listener records the time when it takes a backlog, and again before its first call after each check of the
// watchdog. Reason: reading the clock before each call would cost more than the work of many handlers; comparing the
// number of checks costs a nanosecond. Price: a call may have begun later than its recorded time, by at most the time
// between two checks. The recorded time is exact if the calls before it in its backlog were quick.
type Watchdog struct {
	after time.Duration  // a negative value means never
	epoch time.Time      // recorded times are nanoseconds since epoch, and positive
	calls func() []*Call // of all listeners

	checks atomic.Int64 // number of checks so far; a listener compares it before each call
	armed  atomic.Bool  // the timer runs

	running   sync.WaitGroup // the timer, or its function
	mu        sync.Mutex     // guards the fields below
	timer     *time.Timer
	lastCheck int64 // time of the last check; 0 before the first one
}

// New returns a watchdog that reports calls which take longer than after: 0 means 5 minutes, a negative value never.
// calls returns those of all listeners.
func New(after time.Duration, calls func() []*Call) *Watchdog {
	if after == 0 {
		after = defaultStuckAfter
	}
	return &Watchdog{after: after, epoch: time.Now().Add(-1), calls: calls}
}

func (w *Watchdog) period() time.Duration { return max(w.after/checksPerPeriod, 1) }

// offset returns a time in the form in which it is recorded.
func (w *Watchdog) offset(t time.Time) int64 { return int64(t.Sub(w.epoch)) }

// time returns a recorded time. The recorded time of a reported call is negative.
func (w *Watchdog) time(at int64) time.Time { return w.epoch.Add(time.Duration(max(at, -at))) }

// arm starts the timer if it does not run.
func (w *Watchdog) arm() {
	if w.after < 0 || w.armed.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.armed.Load() {
		w.start(w.period())
	}
}

// start starts the timer. The lock is held.
func (w *Watchdog) start(d time.Duration) {
	w.armed.Store(true)
	w.running.Add(1)
	w.timer = time.AfterFunc(d, w.check)
}

// Stop ends the watchdog after all listeners have ended. It waits until the timer's function has returned.
func (w *Watchdog) Stop() {
	w.mu.Lock()
	if w.timer != nil && w.timer.Stop() {
		w.running.Done()
	}
	w.mu.Unlock()
	w.running.Wait()
}

// check reports the calls that take long. The timer continues if other calls are in flight.
func (w *Watchdog) check() {
	defer w.running.Done()
	for _, c := range w.findLong() {
		c.Report("handler takes long", c.took)
	}
}

// longCall is a call that takes long.
type longCall struct {
	*Call
	took time.Duration
}

// findLong marks the calls that take long as reported, and returns them. A call whose time was not recorded again after
// the last check began before that check. So an old recorded time does not make a quick call a long one.
func (w *Watchdog) findLong() (long []longCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed.Store(false) // first, so that a listener that begins a call from now on arms the watchdog again
	now, next := w.offset(time.Now()), time.Duration(0)
	w.checks.Add(1) // after now, so that a time that is recorded after this check is not before now
	for _, c := range w.calls() {
		at := c.startedAt.Load()
		if at <= 0 {
			continue
		}
		took := time.Duration(now - at)
		if took >= w.after && at < w.lastCheck && c.startedAt.CompareAndSwap(at, -at) {
			long = append(long, longCall{c, took})
			continue
		}
		next = cmp.Or(next, w.period())
		if took < w.after {
			next = min(next, w.after-took)
		}
	}
	w.lastCheck = now
	if next > 0 {
		w.start(next)
	}
	return long
}

// Call is the recorded time of one listener's call. seenChecks belongs to the goroutine that delivers.
type Call struct {
	Watchdog *Watchdog
	Report   func(what string, took time.Duration) // of a call that takes long, and of its return

	seenChecks int64        // the number of checks when the time was recorded
	startedAt  atomic.Int64 // recorded time of the call in flight; 0 without a call, negative if it is reported
}

// Begin records that calls begin now.
func (c *Call) Begin(now time.Time) {
	c.seenChecks = c.Watchdog.checks.Load()
	c.setStart(c.Watchdog.offset(now))
	c.Watchdog.arm()
}

// Next is called before each call.
func (c *Call) Next() {
	if c.seenChecks != c.Watchdog.checks.Load() {
		c.Begin(time.Now())
	}
}

// End records that no call is in flight.
func (c *Call) End() { c.setStart(0) }

// setStart replaces the recorded time. If the previous call was reported, its return is reported too.
func (c *Call) setStart(at int64) {
	if before := c.startedAt.Swap(at); before < 0 {
		c.Report("handler has returned", time.Since(c.Watchdog.time(before)))
	}
}

// StuckSince returns when the call in flight began if it is reported, and otherwise the zero time.
func (c *Call) StuckSince() time.Time {
	if at := c.startedAt.Load(); at < 0 {
		return c.Watchdog.time(at)
	}
	return time.Time{}
}
