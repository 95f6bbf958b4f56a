package reflector

import (
	"time"

	"github.com/leatproject/leat/api"
)

// verb is one of the four things a reflector can be doing on the wire.
type verb int

const (
	stream verb = iota // open a watch that begins with the whole state (KEP-3157), and stay on it
	page               // fetch one page of a list
	watch              // watch from the version reached
	probe              // ask for the version of the server, which may have gone back
)

// state is where a reflector stands between two requests. It holds no object and no connection: next decides from it,
// and from how the last request ended, what to ask for. The zero state is that of a reflector that knows nothing.
type state struct {
	do      verb
	version string // that of the last list, event or bookmark

	consistent  bool   // the next list must be the truth: version was refused, or contradicted
	rewound     bool   // the truth was older than version: believe it, and nothing that is known
	token       string // of the next page
	pages       int    // fetched of the list in progress
	unlimited   bool   // a page was lost under way: take the whole list in one
	serverPages bool   // the server paged an answer from any version, so it has no watch cache: go on paging

	streamAfter    time.Time // do not try a streaming list before
	streamFailures int       // streaming lists in a row that broke off
	emptyWatches   int       // watches in a row that failed without one event
	// silence is for how long watches have brought nothing, not even a bookmark.
	silence    time.Duration
	busyProbes int // probes in a row that were busy

	attempt  int       // failures in a row, for the backoff
	failedAt time.Time // when the last of them was
	away     bool      // the last of them was busy
	relisted bool      // a watch led to a list meanwhile
	// spread is added to the pause before the next request, all of it or a part, at random.
	spread time.Duration
}

// ending says how a request ended, as far as it matters for what comes next.
type ending int

const (
	done         ending = iota // in good order: a page arrived, or the server closed a watch
	expired                    // the version, or the token, is gone (410)
	tooLarge                   // the server has not reached the version yet
	unreachable                // no server was there
	busy                       // the server said 429 or 503: it has not judged the request
	rejected                   // the server will not do this (a 4xx)
	deadline                   // the request made no progress in time
	backwards                  // the answer contradicts the version reached
	rewound                    // so does the truth: the server went back
	cannotStream               // the source has no streaming lists, and says so
	broken                     // anything else: a reset, a 5xx, a frame that cannot be read
)

// outcome is what a request came to.
type outcome struct {
	ending  ending
	synced  bool // the initial state was complete (stream), or this was the last page
	version string
	token   string
	items   int           // of a page
	events  int           // events and bookmarks that brought anything new after the initial state
	heard   bool          // so did a bookmark of the version reached, or the initial state: the server has that version
	lasted  time.Duration // how long the request took
	paged   bool          // the server split the answer though it might have taken it from its cache

	at         time.Time     // when it ended
	retryAfter time.Duration // what the server asked for, as far as it is granted
}

// limits are the constants of the transition table; Options may change some of them.
type limits struct {
	streaming    bool
	streamPause  time.Duration // after a streaming list was given up
	backoffBase  time.Duration
	backoffMax   time.Duration
	backoffReset time.Duration // a reflector that was well for so long starts again at the base
	shortWatch   time.Duration // a watch without events that ends sooner has failed
	relistSpread time.Duration // over which clients that were away scatter their lists
	maxSilence   time.Duration // of watches before a probe
}

const (
	maxStreamFailures = 3
	maxEmptyWatches   = 3
	maxBusyProbes     = 2
)

// first returns the state in which a reflector begins, which is a list.
func (l limits) first(now time.Time) state { return l.chooseList(state{}, now) }

// next is the whole policy of a reflector: from where it stands and how its request ended, where it stands now and how
// long it waits before it asks again (before jitter). It reads no clock and touches nothing.
//
// No server can make it ask without end and without a pause: wherever it goes on at once, something has changed that
// cannot change for ever (a page with new objects came, a watch lasted, one more way to get the state was given up).
func (l limits) next(s state, o outcome) (state, time.Duration) {
	s.spread = 0
	if o.synced {
		s.version = o.version
	}
	switch {
	case s.do == page:
		return l.afterPage(s, o)
	case s.do == probe:
		return l.afterProbe(s, o)
	case s.do == stream && !o.synced:
		return l.afterBrokenStream(s, o)
	}
	s, wait := l.afterWatch(s, o)
	if s.do == watch && !s.resumable() {
		s = l.chooseList(s, o.at) // there is nothing to resume from, and deletions would go unseen
	}
	return s, wait
}

// afterPage continues a list, or starts it anew.
func (l limits) afterPage(s state, o outcome) (state, time.Duration) {
	s.serverPages = s.serverPages || o.paged
	underWay := s.pages > 0
	switch o.ending {
	case done:
		if o.synced {
			return s.listed(), 0
		}
		s.token, s.pages = o.token, s.pages+1
		if o.items == 0 {
			return s, l.backoffBase // it may be that nothing on it was selected, but there may also be no end of these
		}
		return s, 0
	case busy, unreachable:
		if underWay {
			return l.retry(s, o, true) // the token holds
		}
	case expired, tooLarge, backwards, rewound:
		lost := underWay && o.ending == expired && !s.unlimited // it is the token that is gone
		s, repeated := s.distrust(o.ending)
		s.unlimited = s.unlimited || lost
		return l.retry(s.restartList(), o, repeated && !lost)
	case rejected:
		s.unlimited = s.unlimited || underWay
	}
	return l.retry(l.chooseList(s.restartList(), o.at), o, true)
}

// afterBrokenStream is reached when a streaming list ended before it was complete: try again, or fall back to pages.
func (l limits) afterBrokenStream(s state, o outcome) (state, time.Duration) {
	switch o.ending {
	case busy, unreachable:
		return l.retry(s, o, true)
	case expired, tooLarge, backwards, rewound:
		s, repeated := s.distrust(o.ending)
		return l.retry(s, o, repeated)
	case rejected, deadline, cannotStream:
		return l.giveUpStreaming(s, o.at), o.retryAfter
	}
	s.streamFailures++
	if s.streamFailures >= maxStreamFailures {
		s = l.giveUpStreaming(s, o.at)
	}
	return l.retry(s, o, true)
}

// afterWatch resumes from the version reached whenever it can: only a version that is gone, a server that contradicts
// itself, and three watches in a row that led to nothing cost a list.
//
// A watch that ends in silence may be one from the future: a server that went back waits until the version has come
// again, and says nothing. A probe finds out. Bookmarks are a minute apart, so a minute without any is worth one.
func (l limits) afterWatch(s state, o outcome) (state, time.Duration) {
	silence := s.silence + o.lasted
	if o.events > 0 || o.heard {
		silence = 0
	}
	s = s.listed()
	s.silence = silence
	if o.events > 0 {
		s.emptyWatches = 0
	}
	switch o.ending {
	case done:
		if o.events > 0 || o.lasted >= l.shortWatch {
			s.emptyWatches = 0
			if silence >= l.maxSilence {
				s = s.doubt()
			}
			return s, max(0, l.shortWatch-o.lasted) // a server may end each watch with its first event
		}
	case expired:
		return l.relist(s, o)
	case backwards, rewound:
		s.consistent = true
		return l.relist(s, o)
	case busy, unreachable:
		return l.retry(s.doubt(), o, true) // whoever restores a server stops it first
	}
	if o.events == 0 {
		s.emptyWatches++
	}
	if s.emptyWatches >= maxEmptyWatches {
		s.emptyWatches, s.silence = 0, 0
		s = l.chooseList(s, o.at)
	}
	return l.retry(s, o, true)
}

// afterProbe watches, unless the server went back: the probe has said so once, and the list that follows is believed. A
// probe that fails must not keep the watch from its work, except where no server is there for either. One that is busy
// is tried once more, because a server that starts refuses both for a moment; and whatever else the server has against
// a probe, it may have nothing against the watch. The price is that a version is not checked before the next silence.
func (l limits) afterProbe(s state, o outcome) (state, time.Duration) {
	tried := s.busyProbes
	s = s.listed()
	switch o.ending {
	case done:
		return s, 0
	case rewound:
		s.consistent, s.rewound = true, true
		return l.relist(s, o)
	case unreachable:
		s.do = probe
	case busy:
		if tried+1 < maxBusyProbes {
			s.do, s.busyProbes = probe, tried+1
		}
	case rejected:
		return s, o.retryAfter
	}
	return l.retry(s, o, true)
}

// doubt makes the next request a probe, where versions can be compared.
func (s state) doubt() state {
	s.silence = 0
	if _, decimal := api.CompareVersions("1", s.version); decimal && s.resumable() {
		s.do = probe
	}
	return s
}

// listed is s with a complete state, watching.
func (s state) listed() state {
	s.do = watch
	s.streamFailures, s.silence, s.busyProbes = 0, 0, 0
	s.consistent, s.rewound, s.unlimited = false, false, false
	return s.restartList()
}

// restartList forgets the pages of a list in progress.
func (s state) restartList() state {
	s.token, s.pages = "", 0
	return s
}

// distrust makes the next list the truth, since the version reached was refused or contradicted, and the one after it a
// list that owes nothing to what is known. repeated says that the last list was that already.
func (s state) distrust(e ending) (distrusting state, repeated bool) {
	repeated = s.consistent
	if e == rewound {
		repeated, s.rewound = s.rewound, true
	}
	s.consistent = true
	return s, repeated
}

// resumable tells whether a watch can go on from the version reached. "" and "0" are none: they are how clients ask for
// any version.
func (s state) resumable() bool { return s.version != "" && s.version != "0" }

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
// because a server that refuses every watch would be asked for one list after the other.
//
// The first list after an outage does not wait for a backoff either: the cache is as old as the outage, and the pauses
// of an outage have been waited. It is spread over five seconds instead, because all clients of a server come back to
// it at the same time. Their pauses have scattered them, but after a short outage over a second only. Five seconds make
// 5,000 clients send 1,000 lists a second. The price is a cache that is 2.5 seconds older, on average.
func (l limits) relist(s state, o outcome) (state, time.Duration) {
	s.emptyWatches, s.silence = 0, 0
	back := s.away && !s.relisted
	s = l.failed(l.chooseList(s, o.at), o)
	s.relisted = true
	if back && s.attempt > 1 {
		s.spread = l.relistSpread
		return s, o.retryAfter
	}
	return s, max(l.backoff(s.attempt-1), o.retryAfter)
}

// retry waits before the next request if wait is set, and at least as long as the server asked for.
func (l limits) retry(s state, o outcome, wait bool) (state, time.Duration) {
	if !wait {
		return s, o.retryAfter
	}
	s = l.failed(s, o)
	return s, max(l.backoff(s.attempt), o.retryAfter)
}

func (l limits) failed(s state, o outcome) state {
	if o.at.Sub(s.failedAt) > l.backoffReset {
		s.attempt, s.relisted = 0, false
	}
	s.attempt++
	s.failedAt, s.away = o.at, o.ending == busy || o.ending == unreachable
	return s
}

// backoff doubles from the base up to the maximum; attempt 0 does not wait.
func (l limits) backoff(attempt int) time.Duration {
	if attempt <= 0 {
		return 0
	}
	d := l.backoffBase
	for ; attempt > 1 && d < l.backoffMax; attempt-- {
		d += min(d, l.backoffMax-d) // which no maximum makes overflow
	}
	return min(d, l.backoffMax)
}
