package reflector

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leatproject/leat/api"
)

// Phase says what a reflector is doing.
type Phase string

const (
	// Idle means that Run has not been called.
	Idle Phase = "idle"
	// WatchList means that the initial objects of a WatchList arrive (KEP-3157).
	WatchList Phase = "WatchList"
	// Listing means that the pages of a list arrive.
	Listing Phase = "listing"
	// Watching means that the list is complete and a watch follows it.
	Watching Phase = "watching"
	// Queued means that a list waits for those of other reflectors; see Options.Gate.
	Queued Phase = "queued"
	// Waiting means a pause after a failure.
	Waiting Phase = "waiting"
	// Stopped means that Run has returned.
	Stopped Phase = "stopped"
)

// Status describes a reflector. It shows why an informer is not synced.
type Status struct {
	Phase Phase
	// ResourceVersion is the newest version received. The store may not have processed it yet.
	ResourceVersion string
	// Objects is the number of objects that arrived with the list in progress, or with the last list. Remaining is the
	// number of objects that will follow according to the server, or -1 if it does not say.
	Objects   int
	Remaining int64

	// LastError is the error of the last failed request. Err is the same error until a request succeeds, and nil from
	// then on. A request succeeds when it ends without an error, and when a list is complete. A watch succeeds when it
	// is open: the header of a successful answer has arrived. A silent watch brings nothing else for minutes. An error
	// that follows the header is the next failure.
	LastError, Err error
	LastErrorAt    time.Time
	// CaughtUpAt is the last time at which the server confirmed that nothing is missing: with the end of a list, or
	// with a bookmark. It is zero before the first list.
	CaughtUpAt time.Time
	// UnconfirmedSince is the time from which on nothing has shown that the server still has ResourceVersion, or zero.
	// It is set after a connection broke, after an outage and in a silent watch. An event, a bookmark, a probe or a
	// list clears it. If it stays for minutes, probes fail (see ProbeErr), and the reflector cannot notice that the
	// server was restored from a backup.
	UnconfirmedSince time.Time
	// ProbeErr is the error of the last probe, or nil if it succeeded or the version is confirmed.
	ProbeErr error
	// Attempt is the number of failures in a row. NextAttempt is the end of the pause of a Waiting reflector.
	Attempt     int
	NextAttempt time.Time
	// RetryAfter is the pause that the server asked for with Err, or zero. The reflector waits no longer than
	// Options.MaxRetryAfter and jitter: see NextAttempt.
	RetryAfter time.Duration

	// Unversioned reports that the source has changed an object without changing its version, as client-go's fake
	// clientsets do. From then on the reflector behaves as with Options.NoListReuse and NoWatchDedup. It detects such a
	// source only without a Transform, and only if the source returns each state as an object of its own. Otherwise,
	// for example if the source uses api.Options.Known, set both options.
	Unversioned bool
	// LastMalformed is the error of the last object that was skipped because it cannot belong to the collection, or
	// nil. It matches ErrMalformed.
	LastMalformed error

	Counters Counters
}

// Counters never decrease.
type Counters struct {
	// The numbers of requests: WatchLists, pages of lists, watches, and probes.
	WatchLists, Pages, Watches, Probes int

	Lists             int // complete states given to the store
	Events, Bookmarks int
	Stale             int // events dropped because a newer state of the object was known
	Undecodable       int
	Malformed         int // objects that match ErrMalformed
	Expired           int // requests that the server answered or ended with 410
	Backwards         int // answers that were older than the version reached
}

// sharedStatus is the Status that the reflector's goroutine writes and other goroutines read.
type sharedStatus struct {
	events atomic.Int64 // Counters.Events; apart from the others, because most events change nothing else here
	failed atomic.Bool  // Err may be set

	mu sync.Mutex // guards the field below
	s  Status
}

func newSharedStatus() *sharedStatus {
	return &sharedStatus{s: Status{Phase: Idle, Remaining: -1}}
}

func (b *sharedStatus) read() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.s
	s.Counters.Events = int(b.events.Load())
	return s
}

func (b *sharedStatus) update(f func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.s)
}

func (b *sharedStatus) phase(p Phase) { b.update(func(s *Status) { s.Phase = p }) }

// begin notes that a request begins.
func (b *sharedStatus) begin(st *state) {
	b.update(func(s *Status) {
		s.NextAttempt = time.Time{}
		switch st.do {
		case watchList:
			s.Phase, s.Objects, s.Remaining = WatchList, 0, -1
			s.Counters.WatchLists++
		case page:
			s.Phase = Listing
			if st.list.token == "" {
				s.Objects, s.Remaining = 0, -1
			}
			s.Counters.Pages++
		case watch:
			s.Phase = Watching
			s.Counters.Watches++
		}
	})
}

// end notes how a request ended, and the pause that the server asked for.
func (b *sharedStatus) end(err error, attempt int, at time.Time, retryAfter time.Duration) {
	b.update(func(s *Status) {
		if err == nil {
			s.clearError()
			return
		}
		b.failed.Store(true)
		s.Attempt = attempt
		s.LastError, s.Err, s.LastErrorAt, s.RetryAfter = err, err, at, retryAfter
		switch classify(err) {
		case expired:
			s.Counters.Expired++
		case backwards, rolledBack:
			s.Counters.Backwards++
		}
	})
}

func (b *sharedStatus) sleep(until time.Time) {
	b.update(func(s *Status) { s.Phase, s.NextAttempt = Waiting, until })
}

// remaining notes how many items will follow a page according to the server. n is nil if the server does not say.
func (b *sharedStatus) remaining(n *int64) {
	b.update(func(s *Status) {
		s.Remaining = -1
		if n != nil {
			s.Remaining = *n
		}
	})
}

// listed notes that the store has a complete state.
func (b *sharedStatus) listed(objects int, version string) {
	b.update(func(s *Status) {
		s.Phase, s.Objects, s.Remaining, s.ResourceVersion = Watching, objects, 0, version
		s.Counters.Lists++
		s.CaughtUpAt = time.Now()
		s.clearError()
	})
}

// caughtUp notes that the server confirmed the state.
func (b *sharedStatus) caughtUp() { b.update(func(s *Status) { s.CaughtUpAt = time.Now() }) }

func (b *sharedStatus) received(objects int) { b.update(func(s *Status) { s.Objects = objects }) }

// open notes that the server has accepted a watch. A WatchList succeeds only at the end of its initial state.
func (b *sharedStatus) open() { b.update((*Status).clearErrorOfWatch) }

// event counts an event. It is called on the reflector's goroutine, like end.
func (b *sharedStatus) event() {
	b.events.Add(1)
	if b.failed.Load() {
		b.failed.Store(false)
		b.open()
	}
}

func (b *sharedStatus) bookmark() {
	b.update(func(s *Status) {
		s.Counters.Bookmarks++
		s.clearErrorOfWatch()
	})
}

// confirm notes whether the version is confirmed.
func (b *sharedStatus) confirm(c *confirmation) {
	b.update(func(s *Status) {
		switch {
		case !c.pending:
			s.UnconfirmedSince, s.ProbeErr = time.Time{}, nil
		case s.UnconfirmedSince.IsZero():
			s.UnconfirmedSince = c.at
		}
	})
}

// signs returns the version reached, and a number that grows with each bookmark.
func (b *sharedStatus) signs() (version string, bookmarks int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.s.ResourceVersion, b.s.Counters.Bookmarks
}

// probed notes a probe that has ended.
func (b *sharedStatus) probed(err error) {
	b.update(func(s *Status) {
		s.Counters.Probes++
		s.ProbeErr = err
	})
}

func (b *sharedStatus) unversioned() { b.update(func(s *Status) { s.Unversioned = true }) }

func (b *sharedStatus) malformed(e *api.UndecodableError) {
	b.update(func(s *Status) {
		s.Counters.Malformed++
		s.LastMalformed = e
	})
}

func (b *sharedStatus) stale()       { b.update(func(s *Status) { s.Counters.Stale++ }) }
func (b *sharedStatus) undecodable() { b.update(func(s *Status) { s.Counters.Undecodable++ }) }

func (b *sharedStatus) reached(version string) {
	b.update(func(s *Status) { s.ResourceVersion = version })
}

// clearErrorOfWatch clears the error if the answer that just arrived belongs to a watch.
func (s *Status) clearErrorOfWatch() {
	if s.Phase == Watching {
		s.clearError()
	}
}

func (s *Status) clearError() { s.Err, s.Attempt, s.RetryAfter = nil, 0, 0 }
