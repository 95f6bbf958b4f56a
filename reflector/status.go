package reflector

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
)

// Phase is what a reflector is doing.
type Phase string

const (
	// Idle is a reflector whose Run has not been called.
	Idle Phase = "idle"
	// StreamingList is an initial state that arrives as a watch (KEP-3157).
	StreamingList Phase = "streaming list"
	// Listing is a list in pages.
	Listing Phase = "listing"
	// Watching is a complete state that is kept up to date.
	Watching Phase = "watching"
	// Probing is a look at the server's version, after an outage or a silent watch, before the next watch.
	Probing Phase = "probing"
	// Waiting is a pause after a failure.
	Waiting Phase = "waiting"
	// Stopped is a reflector whose Run has returned.
	Stopped Phase = "stopped"
)

// Status is how a reflector fares. It answers "why is this not synced".
type Status struct {
	Phase Phase
	// ResourceVersion is the version received last; the store may not have processed it yet.
	ResourceVersion string
	// Objects is how many objects the list in progress, or else the last one, has brought; Remaining is how many more
	// the server said there are, -1 when it did not say.
	Objects   int
	Remaining int64

	// LastError is what the last failed request ended with. Err is the same until the failure is overcome, and nil then.
	// It is overcome when a request ends in good order, when a list is complete, and when the next watch is open: the
	// server has accepted it with the head of a successful answer. A silent watch brings nothing else for minutes. What
	// the server says against the watch after that head is the next failure.
	LastError, Err error
	LastErrorAt    time.Time
	// CaughtUpAt is when the server said last that nothing is missing: with the end of a list, or a bookmark. It is zero
	// before the first list.
	CaughtUpAt time.Time
	// Attempt counts the failures in a row; NextAttempt is when a Waiting reflector will try again.
	Attempt     int
	NextAttempt time.Time
	// RetryAfter is the pause that the server asked for with Err, zero if it asked for none. Options.MaxRetryAfter bounds
	// how much of it the reflector grants: NextAttempt is when it will try again.
	RetryAfter time.Duration

	// Unversioned says that the source has changed an object without changing its version, as client-go's fake clientsets
	// do. From then on nothing is reused in lists and no event is dropped for its version, as with Options.NoListReuse and
	// NoWatchDedup. It is found when the source hands out both states as objects of their own and Options have no
	// Transform; with one, or with a source that asks api.Options.Known, set both options.
	Unversioned bool
	// LastMalformed is the last object that was not given to the store because it cannot belong to the collection, nil if
	// there was none. It matches ErrMalformed.
	LastMalformed error

	Counters Counters
}

// Counters only ever grow.
type Counters struct {
	// Requests made: WatchLists, pages of lists, watches, and lists that ask only for the version.
	Streams, Pages, Watches, Probes int

	Lists             int // complete states given to the store
	Events, Bookmarks int
	Stale             int // events dropped since something newer was known
	Undecodable       int
	Malformed         int // objects that match ErrMalformed
	Expired           int // requests that the server refused or ended with 410
	Backwards         int // answers from before the version reached
}

// statusBoard is where the reflector's goroutine writes its Status and others read it.
type statusBoard struct {
	mu sync.Mutex // guards the field below
	s  Status
}

func newStatusBoard() *statusBoard {
	return &statusBoard{s: Status{Phase: Idle, Remaining: -1}}
}

func (b *statusBoard) read() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.s
}

func (b *statusBoard) update(f func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.s)
}

func (b *statusBoard) phase(p Phase) { b.update(func(s *Status) { s.Phase = p }) }

// begin notes that a request is about to be made.
func (b *statusBoard) begin(st state) {
	b.update(func(s *Status) {
		s.NextAttempt = time.Time{}
		switch st.do {
		case stream:
			s.Phase, s.Objects, s.Remaining = StreamingList, 0, -1
			s.Counters.Streams++
		case page:
			s.Phase = Listing
			if st.pages == 0 {
				s.Objects, s.Remaining = 0, -1
			}
			s.Counters.Pages++
		case watch:
			s.Phase = Watching
			s.Counters.Watches++
		case probe:
			s.Phase = Probing
			s.Counters.Probes++
		}
	})
}

// end notes how a request ended, and the pause that the server asked for.
func (b *statusBoard) end(err error, attempt int, at time.Time, retryAfter time.Duration) {
	b.update(func(s *Status) {
		if err == nil {
			s.healthy()
			return
		}
		s.Attempt = attempt
		s.LastError, s.Err, s.LastErrorAt, s.RetryAfter = err, err, at, retryAfter
		switch classify(err) {
		case expired:
			s.Counters.Expired++
		case backwards, rewound:
			s.Counters.Backwards++
		}
	})
}

func (b *statusBoard) sleep(until time.Time) {
	b.update(func(s *Status) { s.Phase, s.NextAttempt = Waiting, until })
}

func (b *statusBoard) remaining(meta metav1.ListMeta) {
	b.update(func(s *Status) { s.Remaining = remainingItems(meta) })
}

// listed notes that the store has a complete state.
func (b *statusBoard) listed(objects int, version string) {
	b.update(func(s *Status) {
		s.Phase, s.Objects, s.Remaining, s.ResourceVersion = Watching, objects, 0, version
		s.Counters.Lists++
		s.CaughtUpAt = time.Now()
		s.healthy()
	})
}

// caughtUp notes that nothing is missing.
func (b *statusBoard) caughtUp() { b.update(func(s *Status) { s.CaughtUpAt = time.Now() }) }

func (b *statusBoard) received(objects int) { b.update(func(s *Status) { s.Objects = objects }) }

// open notes that the server has accepted a watch. A streaming list has still to come to its end.
func (b *statusBoard) open() { b.update((*Status).recover) }

func (b *statusBoard) event() {
	b.update(func(s *Status) {
		s.Counters.Events++
		s.recover()
	})
}

func (b *statusBoard) bookmark() {
	b.update(func(s *Status) {
		s.Counters.Bookmarks++
		s.recover()
	})
}

func (b *statusBoard) unversioned() { b.update(func(s *Status) { s.Unversioned = true }) }
func (b *statusBoard) malformed(e *api.UndecodableError) {
	b.update(func(s *Status) {
		s.Counters.Malformed++
		s.LastMalformed = e
	})
}

func (b *statusBoard) stale()       { b.update(func(s *Status) { s.Counters.Stale++ }) }
func (b *statusBoard) undecodable() { b.update(func(s *Status) { s.Counters.Undecodable++ }) }

func (b *statusBoard) reached(version string) {
	b.update(func(s *Status) { s.ResourceVersion = version })
}

// recover notes a sign of life: outside a list it means that the last failure is overcome.
func (s *Status) recover() {
	if s.Phase == Watching {
		s.healthy()
	}
}

func (s *Status) healthy() { s.Err, s.Attempt, s.RetryAfter = nil, 0, 0 }
