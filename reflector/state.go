package reflector

import "time"

// verb is one of the three things a reflector can be doing on the wire.
type verb int

const (
	stream verb = iota // open a watch that begins with the whole state (KEP-3157), and stay on it
	page               // fetch one page of a list
	watch              // watch from the version reached
)

// state is where a reflector stands between two requests. It holds no object and no connection: next decides from it,
// and from how the last request ended, what to ask for. The zero state is that of a reflector that knows nothing.
type state struct {
	do      verb
	version string // that of the last list, event or bookmark

	consistent  bool   // the next list must be the truth: version was refused, or contradicted
	token       string // of the next page
	pages       int    // fetched of the list in progress
	unlimited   bool   // a page expired under way: take the whole list in one
	serverPages bool   // the server paged an answer from any version, so it has no watch cache: go on paging

	streamAfter    time.Time // do not try a streaming list before
	streamFailures int       // streaming lists in a row that broke off
	emptyWatches   int       // watches in a row that failed without one event

	attempt  int       // failures in a row, for the backoff
	failedAt time.Time // when the last of them was
}

// ending says how a request ended, as far as it matters for what comes next.
type ending int

const (
	done      ending = iota // in good order: a page arrived, or the server closed a watch
	expired                 // the version, or the token, is gone (410)
	tooLarge                // the server has not reached the version yet
	busy                    // the server could not be reached, or said 429: it has not judged the request
	rejected                // the server will not do this (a 4xx)
	deadline                // a streaming list made no progress in time
	backwards               // the answer contradicts the version reached: the server went back
	broken                  // anything else: a reset, a 5xx, a frame that cannot be read

)

// outcome is what a request came to.
type outcome struct {
	ending  ending
	synced  bool // the initial state was complete (stream), or this was the last page
	version string
	token   string
	events  int           // events and bookmarks seen after the initial state
	lasted  time.Duration // how long the request took
	paged   bool          // the server split the answer though it might have taken it from its cache

	at         time.Time     // when it ended
	retryAfter time.Duration // what the server asked for
}

// limits are the constants of the transition table; Options may change some of them.
type limits struct {
	streaming    bool
	streamPause  time.Duration // after a streaming list was given up
	backoffBase  time.Duration
	backoffMax   time.Duration
	backoffReset time.Duration // a reflector that was well for so long starts again at the base
	shortWatch   time.Duration // a watch without events that ends sooner has failed
}

const (
	maxStreamFailures = 3
	maxEmptyWatches   = 3
)

// next is the whole policy of a reflector: from where it stands and how its request ended, where it stands now and how
// long it waits before it asks again (before jitter). It reads no clock and touches nothing.
func (l limits) next(s state, o outcome) (state, time.Duration) {
	if o.version != "" {
		s.version = o.version
	}
	switch {
	case s.do == page:
		return l.afterPage(s, o)
	case s.do == stream && !o.synced:
		return l.afterBrokenStream(s, o)
	default:
		return l.afterWatch(s, o)
	}
}

// afterPage continues a list, or starts it anew.
func (l limits) afterPage(s state, o outcome) (state, time.Duration) {
	s.serverPages = s.serverPages || o.paged
	switch o.ending {
	case done:
		if o.synced {
			return s.listed(), 0
		}
		s.token, s.pages = o.token, s.pages+1
		return s, 0
	case expired, tooLarge, backwards:
		underWay := s.pages > 0
		repeated := s.consistent && !underWay
		s = s.restartList()
		s.unlimited = s.unlimited || underWay
		s.consistent = true
		return l.retry(s, o, repeated)
	default:
		return l.retry(l.chooseList(s.restartList(), o.at), o, true)
	}
}

// afterBrokenStream is reached when a streaming list ended before it was complete: try again, or fall back to pages.
func (l limits) afterBrokenStream(s state, o outcome) (state, time.Duration) {
	switch o.ending {
	case busy:
		return l.retry(s, o, true)
	case expired, tooLarge, backwards:
		repeated := s.consistent
		s.consistent = true
		return l.retry(s, o, repeated)
	case rejected, deadline:
		return l.giveUpStreaming(s, o.at), 0
	default:
		s.streamFailures++
		if s.streamFailures >= maxStreamFailures {
			s = l.giveUpStreaming(s, o.at)
		}
		return l.retry(s, o, true)
	}
}

// afterWatch resumes from the version reached whenever it can: only a version that is gone, a server that contradicts
// itself, and three watches in a row that led to nothing cost a list.
func (l limits) afterWatch(s state, o outcome) (state, time.Duration) {
	s = s.listed()
	if o.events > 0 {
		s.emptyWatches = 0
	}
	switch o.ending {
	case done:
		if o.events > 0 || o.lasted >= l.shortWatch {
			s.emptyWatches = 0
			return s, 0
		}
	case expired:
		return l.relist(s, o)
	case backwards:
		s.consistent = true
		return l.relist(s, o)
	case busy:
		return l.retry(s, o, true)
	}
	if o.events == 0 {
		s.emptyWatches++
	}
	if s.emptyWatches >= maxEmptyWatches {
		s.emptyWatches = 0
		s = l.chooseList(s, o.at)
	}
	return l.retry(s, o, true)
}

// listed is s with a complete state, watching.
func (s state) listed() state {
	s.do = watch
	s.streamFailures = 0
	s.consistent = false
	s = s.restartList()
	s.unlimited = false
	return s
}

// restartList forgets the pages of a list in progress.
func (s state) restartList() state {
	s.token, s.pages = "", 0
	return s
}

// chooseList picks the way to get the whole state.
func (l limits) chooseList(s state, now time.Time) state {
	s.do = page
	if l.streaming && !now.Before(s.streamAfter) {
		s.do = stream
	}
	return s
}

func (l limits) giveUpStreaming(s state, now time.Time) state {
	s.do = page
	s.streamFailures = 0
	s.streamAfter = now.Add(l.streamPause)
	return s
}

// relist gets the whole state again: at once if this is the first trouble in a long time, and with backoff otherwise,
// since a server that refuses every watch would else be asked for one list after the other.
func (l limits) relist(s state, o outcome) (state, time.Duration) {
	s.emptyWatches = 0
	s = l.failed(l.chooseList(s, o.at), o.at)
	return s, max(l.backoff(s.attempt-1), o.retryAfter)
}

// retry waits before the next request if wait is set, and at least as long as the server asked for.
func (l limits) retry(s state, o outcome, wait bool) (state, time.Duration) {
	if !wait {
		return s, o.retryAfter
	}
	s = l.failed(s, o.at)
	return s, max(l.backoff(s.attempt), o.retryAfter)
}

func (l limits) failed(s state, now time.Time) state {
	if now.Sub(s.failedAt) > l.backoffReset {
		s.attempt = 0
	}
	s.attempt++
	s.failedAt = now
	return s
}

// backoff doubles from the base up to the maximum; attempt 0 does not wait.
func (l limits) backoff(attempt int) time.Duration {
	if attempt <= 0 {
		return 0
	}
	d := l.backoffBase
	for ; attempt > 1 && d < l.backoffMax; attempt-- {
		d *= 2
	}
	return min(d, l.backoffMax)
}
