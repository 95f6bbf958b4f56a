package reflector

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	// LastError is what the last failed request ended with. Err is the same as long as the failure is not overcome, and
	// nil otherwise.
	LastError, Err error
	LastErrorAt    time.Time
	// CaughtUpAt is when the server said last that nothing is missing: with the end of a list, or a bookmark. It is zero
	// before the first list.
	CaughtUpAt time.Time
	// Attempt counts the failures in a row; NextAttempt is when a Waiting reflector will try again.
	Attempt     int
	NextAttempt time.Time

	Counters Counters
}

// Counters only ever grow.
type Counters struct {
	Streams, Pages, Watches int // requests made: streaming lists, pages of lists, watches
	Lists                   int // complete states given to the store
	Events, Bookmarks       int
	Stale                   int // events dropped since something newer was known
	Undecodable             int
	Expired                 int // requests that the server refused or ended with 410
	Backwards               int // answers from before the version reached
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
		}
	})
}

// end notes how a request ended.
func (b *statusBoard) end(err error, attempt int, at time.Time) {
	b.update(func(s *Status) {
		if err == nil {
			s.healthy()
			return
		}
		s.Attempt = attempt
		s.LastError, s.Err, s.LastErrorAt = err, err, at
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

func (s *Status) healthy() { s.Err, s.Attempt = nil, 0 }
