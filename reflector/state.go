package reflector

import "time"

// verb is one of the four requests of a reflector.
type verb int

const (
	watchList verb = iota // open a watch that starts with the current state (KEP-3157), and keep it open
	page                  // fetch one page of a list
	watch                 // watch from the version reached
	probe                 // request the version of the server, beside a watch; state.do never has this value
)

// state is what a reflector knows between two requests. It holds no object and no connection. next decides the next
// request from it and from the result of the last one. The zero state knows nothing.
type state struct {
	do        verb
	version   string // of the last list, event or bookmark
	list      listState
	watchList watchListState
	watches   watchState
	failures  failureState
	confirm   confirmation // beside a watch, the prober changes it

	serverPages bool // the server paged an answer of any version, so it has no watch cache: keep paging
	// spread is the upper bound of a random time that is added to the pause before the next request.
	spread time.Duration
}

// listState describes the list in progress, or the next one. It is zero while the reflector watches.
type listState struct {
	need      consistency
	token     string        // of the next page; empty before the first page
	failing   time.Duration // an upper bound of the time since requests for the next page fail
	unlimited bool          // a continue token was lost: request the whole list in one page
}

// consistency says which answers a list accepts. Each value requires more of the request than the one before.
type consistency int

const (
	notOlder       consistency = iota // an answer that is at least as new as the version reached
	consistentRead                    // the newest state, because the version was refused or contradicted
	acceptRollback                    // the newest state even if it is older than the version; known objects are not reused
)

// watchListState counts the incomplete WatchLists.
type watchListState struct {
	failures int       // in a row
	after    time.Time // request no WatchList before
}

// watchState describes the watches since the last list.
type watchState struct {
	failures int           // watches in a row that failed without an event
	silence  time.Duration // the time that watches have lasted since something confirmed the version
}

// failureState describes the failures in a row. A time without a failure (limits.backoffReset) begins a new row, and so
// does a watch that brought an event and lasted longer than the pause before it.
type failureState struct {
	count    int       // for the backoff
	at       time.Time // the time of the last failure
	outage   bool      // the last failure was one of an outage: no connection, 429 or 503
	relisted bool      // one of the failures led from a watch to a list
}

// outcome classifies how a request ended, as far as the next request depends on it.
type outcome int

const (
	done        outcome = iota // no error: a page arrived, or the server closed a watch
	expired                    // the server has forgotten the version or the continue token (410)
	tooLarge                   // the server has not reached the version yet
	unreachable                // the client got no connection
	busy                       // the server answered 429 or 503, so it did not look at the request
	rejected                   // the server refuses the request (another 4xx)
	deadline                   // the request made no progress in time
	backwards                  // the answer is older than the version reached
	rolledBack                 // and it is a consistent read, so the server was restored from a backup
	unconfirmed                // nothing confirmed in time that the server still has the version
	missed                     // the owner of the store found a change that the watch did not bring
	noWatchList                // the source does not support WatchLists
	broken                     // anything else: a reset, a 5xx, a frame that cannot be decoded
)

// result is what a request returned.
type result struct {
	outcome outcome
	synced  bool // the initial state of a WatchList is complete, or the page was the last one
	version string
	token   string
	items   int           // objects on a page
	events  int           // events and bookmarks with a new version, after the initial state
	silence time.Duration // the time since something confirmed the version, at the end of a watch
	lasted  time.Duration // how long the request took
	paged   bool          // the server paged the answer although it may have answered from a watch cache

	at         time.Time     // when the request ended
	retryAfter time.Duration // the pause that the server asked for, at most Options.MaxRetryAfter
}

// limits are the constants of the transition table. Options change some of them.
type limits struct {
	watchList      bool          // request WatchLists at all
	watchListPause time.Duration // after the reflector gave up WatchLists
	backoffBase    time.Duration
	backoffMax     time.Duration
	backoffReset   time.Duration // the backoff starts again at the base after this time without a failure
	shortWatch     time.Duration // a watch that ends sooner, and without an event, has failed
	relistSpread   time.Duration // the clients of a server spread their lists after an outage over this time
	maxSilence     time.Duration // of watches before a probe; longer than the minute between two bookmarks
	probeDelay     time.Duration // after the start of a watch from an unconfirmed version
	confirmWithin  time.Duration // an answer confirms a version only within this time: see confirmation.exposed
}

const (
	maxWatchListFailures = 3
	maxEmptyWatches      = 3
)

// first returns the state before the first request, which is for a list.
func (l *limits) first(now time.Time) (s state) {
	l.chooseList(&s, now)
	return s
}

// next is the whole policy of a reflector. From the state and the result of the last request it returns the next state
// and the pause before the next request, without jitter. It reads no clock and has no side effect.
//
// No server can make a reflector send requests forever without a pause. A request follows at once only if something has
// changed that cannot change forever: a page brought new objects, a watch lasted, or one way to get the state is used
// up.
func (l *limits) next(s state, res result) (state, time.Duration) {
	s.spread = 0
	if res.synced {
		s.version = res.version
	}
	s.confirm.after(&res)
	var wait time.Duration
	switch {
	case s.do == page:
		wait = l.afterPage(&s, &res)
	case !res.synced: // a watch begins with a complete state
		wait = l.afterIncompleteWatchList(&s, &res)
	default:
		wait = l.afterWatch(&s, &res)
		if !s.resumable() {
			l.chooseList(&s, res.at) // without a version, a new watch would miss deletions
		}
	}
	if hasOrder(s.version) && (raisesDoubt(res.outcome) || wait+s.spread > 0) { // a restore can also hide in a pause
		s.confirm.doubt(res.at)
	}
	if s.lists() && s.list.token == "" && l.tooLate(&s.confirm, wait+s.spread) {
		s.list.need = acceptRollback // a known object of the same version may be of before the restore
	}
	return s, wait
}

// afterPage requests the next page, watches after the last one, or begins the list again.
func (l *limits) afterPage(s *state, res *result) time.Duration {
	s.serverPages = s.serverPages || res.paged
	isLater := s.list.token != ""
	switch res.outcome {
	case done:
		if res.synced {
			s.listed()
			return 0
		}
		s.list.token, s.list.failing = res.token, 0
		if res.items == 0 {
			return l.backoffBase // a selector may have matched nothing on it, but empty pages may also have no end
		}
		return 0
	case busy, unreachable:
		if isLater {
			wait := l.retry(s, res, true)
			l.distrustPages(s, res.lasted+2*wait) // jitter can double the pause
			return wait
		}
	}
	s.list.token = ""
	switch res.outcome {
	case expired, tooLarge, backwards, rolledBack:
		lost := isLater && res.outcome == expired && !s.list.unlimited // the token has expired, not the version
		repeated := s.requireConsistent(res.outcome)
		s.list.unlimited = s.list.unlimited || lost
		return l.retry(s, res, repeated && !lost)
	case rejected:
		s.list.unlimited = s.list.unlimited || isLater
	}
	l.chooseList(s, res.at)
	return l.retry(s, res, true)
}

// distrustPages begins a list again if a page has failed for longer than confirmWithin. The token is still valid, but a
// restored server may have counted past the list's version, and the page would be of another state than those before
// it. The price: a server that is overloaded for this time has to list from the start.
func (l *limits) distrustPages(s *state, passed time.Duration) {
	if s.list.failing += passed; s.list.failing > l.confirmWithin && s.list.token != "" {
		s.list.token, s.list.need = "", acceptRollback
	}
}

// afterIncompleteWatchList requests another WatchList, or a list in pages.
func (l *limits) afterIncompleteWatchList(s *state, res *result) time.Duration {
	switch res.outcome {
	case busy, unreachable:
		return l.retry(s, res, true)
	case expired, tooLarge, backwards, rolledBack:
		repeated := s.requireConsistent(res.outcome)
		return l.retry(s, res, repeated)
	case rejected, deadline, noWatchList:
		l.giveUpWatchList(s, res.at)
		return res.retryAfter
	}
	s.watchList.failures++
	if s.watchList.failures >= maxWatchListFailures {
		l.giveUpWatchList(s, res.at)
	}
	return l.retry(s, res, true)
}

// afterWatch watches from the version reached whenever it can. It lists only if the server has forgotten the version or
// contradicts itself, if nothing confirmed the version in time, or after three failed watches in a row.
func (l *limits) afterWatch(s *state, res *result) time.Duration {
	s.do, s.list, s.watchList.failures = watch, listState{}, 0
	s.watches.silence = res.silence
	if res.events > 0 {
		s.watches.failures = 0
		if res.lasted > 2*l.backoff(s.failures.count) { // jitter at most doubles a pause
			s.failures = failureState{}
		}
	}
	switch res.outcome {
	case done:
		if res.events > 0 || res.lasted >= l.shortWatch {
			s.watches.failures = 0
			return max(0, l.shortWatch-res.lasted) // a server may end each watch after its first event
		}
	case expired:
		return l.relist(s, res)
	case backwards, missed:
		s.list.need = consistentRead
		return l.relist(s, res)
	case rolledBack, unconfirmed: // the probe and the list agree
		s.list.need = acceptRollback
		return l.relist(s, res)
	case busy, unreachable:
		return l.retry(s, res, true)
	}
	if res.events == 0 {
		s.watches.failures++
	}
	if s.watches.failures >= maxEmptyWatches {
		s.watches = watchState{}
		l.chooseList(s, res.at)
	}
	return l.retry(s, res, true)
}

// listed sets the state after a complete list: the next request is a watch.
func (s *state) listed() {
	s.do, s.list, s.confirm = watch, listState{}, confirmation{}
	s.watchList.failures = 0
	s.watches = watchState{failures: s.watches.failures}
}

// requireConsistent makes the next list a consistent read, because the version reached was refused or contradicted. If
// a consistent read was older, the next one is accepted. repeated reports whether the last list had the same
// requirement.
func (s *state) requireConsistent(o outcome) (repeated bool) {
	need := consistentRead
	if o == rolledBack {
		need = acceptRollback
	}
	repeated = s.list.need >= need
	s.list.need = max(s.list.need, need)
	return repeated
}

// resumable reports whether a watch can continue from the version reached. "" and "0" do not name a state: with them a
// client requests any version.
func (s state) resumable() bool { return s.version != "" && s.version != "0" }

// lists reports whether the next request is one of a list.
func (s state) lists() bool { return s.do == watchList || s.do == page }

// chooseList makes the next request a WatchList, or a page while WatchLists are off.
func (l *limits) chooseList(s *state, now time.Time) {
	s.do = page
	if l.watchList && !now.Before(s.watchList.after) {
		s.do = watchList
	}
}

// giveUpWatchList makes the next request a page, and turns WatchLists off for limits.watchListPause.
func (l *limits) giveUpWatchList(s *state, now time.Time) {
	s.do = page
	s.watchList = watchListState{after: now.Add(l.watchListPause)}
}

// relist requests the whole state again: at once if it is the first failure in a long time, and after a backoff
// otherwise. Without a backoff, a server that refuses every watch would get one list after the other.
//
// The first list after an outage does not wait for a backoff, because the cache is as old as the outage, and the
// reflector has already waited during the outage. All clients of a server come back at the same time, so they spread
// their lists over five seconds: 5,000 clients send 1,000 lists a second. Their pauses during a short outage spread
// them over one second only. The price: the cache stays old for another 2.5 seconds on average.
func (l *limits) relist(s *state, res *result) time.Duration {
	s.watches = watchState{}
	isFirst := s.failures.outage && !s.failures.relisted
	l.chooseList(s, res.at)
	l.failed(s, res)
	s.failures.relisted = true
	if isFirst && s.failures.count > 1 {
		s.spread = l.relistSpread
		return res.retryAfter
	}
	return max(l.backoff(s.failures.count-1), res.retryAfter)
}

// retry returns the pause before the next request: the one that the server asked for, and the backoff if wait is set.
func (l *limits) retry(s *state, res *result, wait bool) time.Duration {
	if !wait {
		return res.retryAfter
	}
	l.failed(s, res)
	return max(l.backoff(s.failures.count), res.retryAfter)
}

// failed counts a failure.
func (l *limits) failed(s *state, res *result) {
	if res.at.Sub(s.failures.at) > l.backoffReset {
		s.failures = failureState{}
	}
	s.failures.count++
	s.failures.at, s.failures.outage = res.at, res.outcome == busy || res.outcome == unreachable
}

// backoff returns the pause after a number of failures in a row. It doubles from the base to the maximum.
func (l *limits) backoff(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	d := l.backoffBase
	for ; failures > 1 && d < l.backoffMax; failures-- {
		d += min(d, l.backoffMax-d) // no maximum can make it overflow
	}
	return min(d, l.backoffMax)
}
