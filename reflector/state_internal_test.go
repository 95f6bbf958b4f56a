package reflector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	allVerbs    = []verb{watchList, page, watch}
	allOutcomes = []outcome{
		done, expired, tooLarge, unreachable, busy, rejected, deadline, backwards, rolledBack, unconfirmed, missed,
		noWatchList, broken,
	}
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

const (
	base    = 800 * time.Millisecond
	longest = 30 * time.Second
)

func testLimits() *limits { return newLimits(true, 0, 0) }

// row is a row of the transition table: the next state and the pause after a state and a result. The request ended at
// noon. It took half a second if the result does not set lasted.
type row struct {
	name     string
	do       []verb
	from     state
	outcomes []outcome
	res      result
	to       state
	wait     time.Duration
}

// combination is a part of the input of next. The table must cover every possible combination.
type combination struct {
	do      verb
	outcome outcome
	synced  bool
	events  bool
}

// possible reports whether a request can have this result. A page has no events, and a page that failed is not the last
// one. A WatchList counts events only after its initial state is complete, and cannot end with ErrNoWatchList then. A
// watch misses a change, or does not confirm its version, only after that. It begins with a complete state.
func (c combination) possible() bool {
	switch c.outcome {
	case noWatchList:
		return c.do == watchList && !c.synced && !c.events
	case missed, unconfirmed:
		return (c.do == watchList || c.do == watch) && c.synced
	}
	switch c.do {
	case page:
		return !c.events && (!c.synced || c.outcome == done)
	case watchList:
		return !c.events || c.synced
	default:
		return c.synced
	}
}

func only(v verb) []verb { return []verb{v} }

// failed returns s after its first failure, at noon.
func failed(s state) state {
	s.failures.count, s.failures.at = 1, noon
	return s
}

// inOutage returns s after its first failure, at noon, which was part of an outage.
func inOutage(s state) state {
	s = failed(s)
	s.failures.outage = true
	return s
}

// relisted returns s after its first failure, at noon, which led from a watch to a list.
func relisted(s state) state {
	s = failed(s)
	s.failures.relisted = true
	return s
}

func (s state) with(f func(*state)) state {
	f(&s)
	return s
}

// table is the whole policy. Each row sets the verb of its from states.
func table() []row {
	established := []verb{watchList, watch} // a complete WatchList is a watch
	at7 := state{version: "7"}
	listing := state{do: page, version: "7", list: listState{token: "t"}}
	watching := state{do: watch, version: "7"}
	paused := noon.Add(time.Minute)
	stale := []outcome{expired, tooLarge, backwards}
	return []row{
		// A page.
		{
			"a page that is not the last: the next one at once", only(page),
			listing.with(func(s *state) { s.list.failing = 20 * time.Second }),
			[]outcome{done},
			result{token: "u", items: 5},
			state{do: page, version: "7", list: listState{token: "u"}},
			0,
		},
		{
			"an empty page that is not the last: the next one after a pause, because empty pages may have no end", only(page), listing,
			[]outcome{done},
			result{token: "u"},
			state{do: page, version: "7", list: listState{token: "u"}},
			base,
		},
		{
			"a page of a list of any version: the server has no watch cache, so page from now on", only(page),
			state{do: page},
			[]outcome{done},
			result{token: "u", items: 5, paged: true},
			state{do: page, serverPages: true, list: listState{token: "u"}},
			0,
		},
		{
			"the last page: watch from the list's version", only(page),
			listing.with(func(s *state) {
				s.list.need, s.list.unlimited, s.watchList.failures = acceptRollback, true, 2
			}),
			[]outcome{done},
			result{synced: true, version: "9"},
			state{do: watch, version: "9"},
			0,
		},
		{
			"the last page of a server without a watch cache: later lists are paged, too", only(page),
			listing.with(func(s *state) { s.serverPages, s.watches.failures = true, 1 }),
			[]outcome{done},
			result{synced: true, version: "9"},
			state{do: watch, version: "9", serverPages: true, watches: watchState{failures: 1}},
			0,
		},
		{
			"a list without a version: it replaces the old version", only(page), at7,
			[]outcome{done},
			result{synced: true},
			state{do: watch},
			0,
		},
		{
			"the version of a list is refused or contradicted: a consistent read at once", only(page), at7, stale,
			result{},
			state{do: page, version: "7", list: listState{need: consistentRead}},
			0,
		},
		{
			"a consistent read is refused or contradicted: again, with backoff", only(page),
			at7.with(func(s *state) { s.list.need = consistentRead }), stale,
			result{},
			failed(state{do: page, version: "7", list: listState{need: consistentRead}}), base,
		},
		{
			"a consistent read is older: accept the next one, at once", only(page), at7.with(func(s *state) { s.list.need = consistentRead }),
			[]outcome{rolledBack},
			result{},
			state{do: page, version: "7", list: listState{need: acceptRollback}},
			0,
		},
		{
			"a consistent read that is accepted is older: again, with backoff", only(page),
			at7.with(func(s *state) { s.list.need = acceptRollback }),
			[]outcome{rolledBack},
			result{},
			failed(state{do: page, version: "7", list: listState{need: acceptRollback}}), base,
		},
		{
			"a token expires: a list in one page at once", only(page), listing,
			[]outcome{expired},
			result{},
			state{do: page, version: "7", list: listState{need: consistentRead, unlimited: true}},
			0,
		},
		{
			"a token of a consistent read expires: a list in one page at once", only(page),
			listing.with(func(s *state) { s.list.need = consistentRead }),
			[]outcome{expired},
			result{},
			state{do: page, version: "7", list: listState{need: consistentRead, unlimited: true}},
			0,
		},
		{
			"the server pages a list without a limit, and its token expires: again, with backoff", only(page),
			listing.with(func(s *state) { s.list.need, s.list.unlimited = consistentRead, true }),
			[]outcome{expired},
			result{},
			failed(state{do: page, version: "7", list: listState{need: consistentRead, unlimited: true}}), base,
		},
		{
			"a list is contradicted on its last page: a consistent read, in pages", only(page), listing,
			[]outcome{tooLarge, backwards},
			result{},
			state{do: page, version: "7", list: listState{need: consistentRead}},
			0,
		},
		{
			"an outage on the first page: a WatchList again", only(page), at7,
			[]outcome{busy, unreachable},
			result{},
			inOutage(state{do: watchList, version: "7"}), base,
		},
		{
			"an outage on a later page: the same page again", only(page), listing,
			[]outcome{busy, unreachable},
			result{},
			inOutage(listing.with(func(s *state) { s.list.failing = 500*time.Millisecond + 2*base })), base,
		},
		{
			"an outage of half a minute on a later page: another list, because the pages may be of before a restore", only(page),
			listing.with(func(s *state) { s.list.failing = 29 * time.Second }),
			[]outcome{busy, unreachable},
			result{},
			inOutage(state{do: page, version: "7", list: listState{need: acceptRollback, failing: 29500*time.Millisecond + 2*base}}), base,
		},
		{
			"a page is refused, stalls or breaks: a WatchList", only(page), at7,
			[]outcome{rejected, deadline, broken},
			result{},
			failed(state{do: watchList, version: "7"}), base,
		},
		{
			"a page is refused, stalls or breaks while WatchLists are off: from the first page", only(page),
			at7.with(func(s *state) { s.watchList.after = paused }),
			[]outcome{rejected, deadline, broken},
			result{},
			failed(state{do: page, version: "7", watchList: watchListState{after: paused}}), base,
		},
		{
			"a later page stalls or breaks: from the first page", only(page),
			listing.with(func(s *state) { s.watchList.after = paused }),
			[]outcome{deadline, broken},
			result{},
			failed(state{do: page, version: "7", watchList: watchListState{after: paused}}), base,
		},
		{
			"a token is refused: a list in one page", only(page), listing.with(func(s *state) { s.watchList.after = paused }),
			[]outcome{rejected},
			result{},
			failed(state{do: page, version: "7", list: listState{unlimited: true}, watchList: watchListState{after: paused}}), base,
		},
		{
			"a list in one page is refused: again in one page", only(page),
			at7.with(func(s *state) { s.list.unlimited, s.watchList.after = true, paused }),
			[]outcome{rejected},
			result{},
			failed(state{do: page, version: "7", list: listState{unlimited: true}, watchList: watchListState{after: paused}}), base,
		},

		// An incomplete WatchList.
		{"an outage: a WatchList again", only(watchList), at7, []outcome{busy, unreachable}, result{}, inOutage(state{version: "7"}), base},
		{
			"the version is refused or contradicted: a consistent read at once", only(watchList), at7, stale,
			result{},
			state{version: "7", list: listState{need: consistentRead}},
			0,
		},
		{
			"a consistent read is refused or contradicted: again, with backoff", only(watchList), at7.with(func(s *state) { s.list.need = consistentRead }), stale,
			result{},
			failed(state{version: "7", list: listState{need: consistentRead}}), base,
		},
		{
			"a consistent read is older: accept the next one, at once", only(watchList), at7.with(func(s *state) { s.list.need = consistentRead }),
			[]outcome{rolledBack},
			result{},
			state{version: "7", list: listState{need: acceptRollback}},
			0,
		},
		{
			"a WatchList is refused or stalls: pages at once, and no WatchList for ten minutes", only(watchList),
			at7.with(func(s *state) { s.watchList.failures = 2 }),
			[]outcome{rejected, deadline, noWatchList},
			result{},
			state{do: page, version: "7", watchList: watchListState{after: noon.Add(10 * time.Minute)}},
			0,
		},
		{
			"it ends early or breaks: a WatchList again", only(watchList), at7,
			[]outcome{done, broken},
			result{},
			failed(state{version: "7", watchList: watchListState{failures: 1}}), base,
		},
		{
			"it ends early or breaks for the third time: pages, and no WatchList for ten minutes", only(watchList),
			at7.with(func(s *state) { s.watchList.failures = 2 }),
			[]outcome{done, broken},
			result{},
			failed(state{do: page, version: "7", watchList: watchListState{after: noon.Add(10 * time.Minute)}}), base,
		},

		// A watch, or a complete WatchList.
		{
			"a watch of a second or more ends: the next one at once", established,
			watching.with(func(s *state) { s.watches.failures, s.watches.silence = 2, time.Hour }),
			[]outcome{done},
			result{synced: true, version: "7", lasted: time.Second, silence: 3 * time.Second},
			watching.with(func(s *state) { s.watches.silence = 3 * time.Second }), 0,
		},
		{
			"a watch of a second or more ends after events: the next one at once", established,
			watching.with(func(s *state) { s.watches.failures, s.watches.silence = 2, time.Hour }),
			[]outcome{done},
			result{synced: true, version: "9", events: 1, lasted: time.Minute},
			state{do: watch, version: "9"},
			0,
		},
		{
			"a short watch with events: at most one a second", established, watching.with(func(s *state) { s.watches.failures = 2 }),
			[]outcome{done},
			result{synced: true, version: "9", events: 1},
			state{do: watch, version: "9"},
			500 * time.Millisecond,
		},
		{
			"a short watch without events has failed", established, watching,
			[]outcome{done},
			result{synced: true, version: "7"},
			failed(state{do: watch, version: "7", watches: watchState{failures: 1}}), base,
		},
		{
			"the version has expired: a list at once", established, watching.with(func(s *state) { s.watches.failures = 2 }),
			[]outcome{expired},
			result{synced: true, version: "7"},
			relisted(state{version: "7"}), 0,
		},
		{
			"the version has expired after events: a list at once", established, watching,
			[]outcome{expired},
			result{synced: true, version: "9", events: 3},
			relisted(state{version: "9"}), 0,
		},
		{
			"the version has expired while WatchLists are off: a list in pages", established, watching.with(func(s *state) { s.watchList.after = paused }),
			[]outcome{expired},
			result{synced: true, version: "7"},
			relisted(state{do: page, version: "7", watchList: watchListState{after: paused}}), 0,
		},
		{
			"the server contradicts itself: a consistent read at once", established, watching.with(func(s *state) { s.watches.failures = 2 }),
			[]outcome{backwards, missed},
			result{synced: true, version: "7"},
			relisted(state{version: "7", list: listState{need: consistentRead}}), 0,
		},
		{
			"the server contradicts itself after events: a consistent read at once", established, watching,
			[]outcome{backwards, missed},
			result{synced: true, version: "9", events: 1},
			relisted(state{version: "9", list: listState{need: consistentRead}}), 0,
		},
		{
			"the server was restored, or did not confirm its version: a list at once, which is accepted", established,
			watching.with(func(s *state) { s.watches.failures = 2 }),
			[]outcome{rolledBack, unconfirmed},
			result{synced: true, version: "7"},
			relisted(state{version: "7", list: listState{need: acceptRollback}}), 0,
		},
		{
			"the server was restored, or did not confirm its version, after events: a list at once, which is accepted", established, watching,
			[]outcome{rolledBack, unconfirmed},
			result{synced: true, version: "9", events: 1},
			relisted(state{version: "9", list: listState{need: acceptRollback}}), 0,
		},
		{
			"the server was restored in an outage: a list within five seconds, which is accepted", established,
			watching.with(func(s *state) { s.failures.count, s.failures.at, s.failures.outage = 9, noon, true }),
			[]outcome{rolledBack},
			result{synced: true, version: "7"},
			state{version: "7", spread: 5 * time.Second, list: listState{need: acceptRollback}, failures: failureState{count: 10, at: noon, relisted: true}},
			0,
		},
		{
			"the version has expired after an outage: a list at once, at random within five seconds", established,
			watching.with(func(s *state) { s.failures.count, s.failures.at, s.failures.outage = 9, noon, true }),
			[]outcome{expired},
			result{synced: true, version: "7"},
			state{version: "7", spread: 5 * time.Second, failures: failureState{count: 10, at: noon, relisted: true}},
			0,
		},
		{
			"the version has expired again after an outage: a list with backoff", established,
			watching.with(func(s *state) {
				s.failures.count, s.failures.at, s.failures.outage, s.failures.relisted = 2, noon, true, true
			}),
			[]outcome{expired},
			result{synced: true, version: "7"},
			state{version: "7", failures: failureState{count: 3, at: noon, relisted: true}},
			2 * base,
		},
		{
			"the version has expired after failures of another kind: a list with backoff", established,
			watching.with(func(s *state) { s.failures.count, s.failures.at = 2, noon }),
			[]outcome{expired},
			result{synced: true, version: "7"},
			state{version: "7", failures: failureState{count: 3, at: noon, relisted: true}},
			2 * base,
		},
		{
			"the version has expired long after an outage: a list at once", established,
			watching.with(func(s *state) { s.failures.count, s.failures.at, s.failures.outage = 9, noon.Add(-time.Hour), true }),
			[]outcome{expired},
			result{synced: true, version: "7"},
			relisted(state{version: "7"}), 0,
		},
		{
			"an outage: the same watch again", established, watching.with(func(s *state) { s.watches.failures = 2 }),
			[]outcome{busy, unreachable},
			result{synced: true, version: "7"},
			inOutage(state{do: watch, version: "7", watches: watchState{failures: 2}}), base,
		},
		{
			"an outage after events: the next watch", established, watching.with(func(s *state) { s.watches.failures = 2 }),
			[]outcome{busy, unreachable},
			result{synced: true, version: "9", events: 1},
			inOutage(state{do: watch, version: "9"}), base,
		},
		{
			"an outage, with versions without an order: the same watch again", established,
			state{do: watch, version: "opaque"},
			[]outcome{busy, unreachable},
			result{synced: true, version: "opaque"},
			inOutage(state{do: watch, version: "opaque"}), base,
		},
		{
			"any other end: a watch again", established, watching,
			[]outcome{tooLarge, rejected, deadline, broken},
			result{synced: true, version: "7", silence: time.Minute},
			failed(state{do: watch, version: "7", watches: watchState{failures: 1, silence: time.Minute}}), base,
		},
		{
			"any other end after events: a watch again", established, watching.with(func(s *state) { s.watches.failures = 2 }),
			[]outcome{tooLarge, rejected, deadline, broken},
			result{synced: true, version: "9", events: 1},
			failed(state{do: watch, version: "9"}), base,
		},
		{
			"the third watch without an event: a list", established, watching.with(func(s *state) { s.watches.failures = 2 }),
			[]outcome{done, tooLarge, rejected, deadline, broken},
			result{synced: true, version: "7"},
			failed(state{version: "7"}), base,
		},
		{
			"no version to watch from: a list after an error", established,
			state{do: watch},
			[]outcome{broken, rejected},
			result{synced: true, events: 1},
			failed(state{}), base,
		},
		{
			"no version to watch from: a list after an outage", established,
			state{do: watch},
			[]outcome{busy, unreachable},
			result{synced: true, events: 1},
			inOutage(state{}), base,
		},
		{
			"no version to watch from: a list after an end without an error", established,
			state{do: watch, version: "0"},
			[]outcome{done},
			result{synced: true, version: "0", lasted: time.Minute},
			state{version: "0"},
			0,
		},
	}
}

// each calls f with every combination of the row.
func (r row) each(f func(c combination, from state, res result)) {
	for _, do := range r.do {
		for _, e := range r.outcomes {
			from, res := r.from, r.res
			from.do, res.outcome, res.at = do, e, noon
			if res.lasted == 0 {
				res.lasted = 500 * time.Millisecond
			}
			f(combination{do, e, res.synced, res.events > 0}, from, res)
		}
	}
}

// doubtful are the outcomes after which the version is unconfirmed. It is also unconfirmed after a pause. The rows of
// the table leave that out.
var doubtful = []outcome{tooLarge, unreachable, busy, rejected, deadline, backwards, rolledBack, broken}

func TestNext(t *testing.T) {
	for _, r := range table() {
		r.each(func(c combination, from state, res result) {
			to, wait := testLimits().next(from, res)
			want := r.to
			if (slices.Contains(doubtful, c.outcome) || r.wait+r.to.spread > 0) && (want.version == "7" || want.version == "9") {
				want.confirm = confirmation{pending: true, at: noon}
			}
			require.Equal(t, want, to, "%s: %+v", r.name, c)
			require.Equal(t, r.wait, wait, "%s: %+v", r.name, c)
		})
	}
}

func TestNextTableIsComplete(t *testing.T) {
	covered := map[combination]bool{}
	for _, r := range table() {
		r.each(func(c combination, _ state, _ result) {
			require.True(t, c.possible(), "%s: %+v", r.name, c)
			covered[c] = true
		})
	}
	for _, do := range allVerbs {
		for _, e := range allOutcomes {
			for _, synced := range []bool{false, true} {
				for _, events := range []bool{false, true} {
					c := combination{do, e, synced, events}
					require.Equal(t, c.possible(), covered[c], "%+v", c)
				}
			}
		}
	}
}

func TestFirst(t *testing.T) {
	l := testLimits()
	require.Equal(t, state{do: watchList}, l.first(noon))
	l.watchList = false
	require.Equal(t, state{do: page}, l.first(noon))
}

// In every row, the pause is at least the one that the server asked for.
func TestNextHonoursRetryAfter(t *testing.T) {
	for _, r := range table() {
		r.each(func(c combination, from state, res result) {
			if res.outcome == done {
				return
			}
			res.retryAfter = 9 * time.Second
			to, wait := testLimits().next(from, res)
			require.Equal(t, 9*time.Second, wait, "%s: %+v", r.name, c)
			require.Equal(t, r.to, to.with(func(s *state) { s.confirm, s.list.failing = confirmation{}, r.to.list.failing }))

			from.failures.count, from.failures.at, from.failures.outage = 10, noon, false
			if _, wait = testLimits().next(from, res); to.failures.count > 0 {
				require.Equal(t, longest, wait, "%s: %+v", r.name, c)
			}
		})
	}
}

func TestWatchListReturnsAfterItsPause(t *testing.T) {
	l := testLimits()
	s := state{version: "7"}
	l.giveUpWatchList(&s, noon)
	s.listed()
	for after, want := range map[time.Duration]verb{0: page, 10*time.Minute - 1: page, 10 * time.Minute: watchList, time.Hour: watchList} {
		s, _ := l.next(s, result{outcome: expired, synced: true, version: "7", at: noon.Add(after)})
		require.Equal(t, want, s.do, after)
	}
	l.watchList = false
	s, _ = l.next(s, result{outcome: expired, synced: true, version: "7", at: noon.Add(time.Hour)})
	require.Equal(t, page, s.do)
}

func TestBackoff(t *testing.T) {
	l := testLimits()
	var got []time.Duration
	for attempt := range 9 {
		got = append(got, l.backoff(attempt))
	}
	require.Equal(t, []time.Duration{
		0, base, 2 * base, 4 * base, 8 * base, 16 * base, 25600 * time.Millisecond, longest, longest,
	}, got)
	require.Equal(t, longest, l.backoff(math.MaxInt))

	l = newLimits(true, time.Hour, time.Minute)
	require.Equal(t, time.Minute, l.backoff(1), "a base above the maximum is the maximum")
	l = newLimits(true, time.Second, math.MaxInt64/8)
	require.Equal(t, time.Duration(math.MaxInt64/8), l.backoff(1000))
	l = newLimits(true, math.MaxInt64-1, math.MaxInt64)
	for attempt := 1; attempt < 100; attempt++ {
		require.Positive(t, l.backoff(attempt))
	}
}

func TestBackoffRestartsAfterTwoGoodMinutes(t *testing.T) {
	l := testLimits()
	s := state{do: watch, version: "7", failures: failureState{count: 5, at: noon}}
	res := result{outcome: busy, synced: true, version: "7", at: noon.Add(2 * time.Minute)}
	_, wait := l.next(s, res)
	require.Equal(t, 25600*time.Millisecond, wait)
	res.at = res.at.Add(1)
	s, wait = l.next(s, res)
	require.Equal(t, base, wait)
	require.Equal(t, 1, s.failures.count)
}

// The longest pause with the largest jitter must not reset the backoff.
func TestBackoffMaximumIsKept(t *testing.T) {
	for _, longest := range []time.Duration{time.Second, 30 * time.Second, 10 * time.Minute} {
		l := newLimits(true, 0, longest)
		s, now, wait := state{do: watch, version: "7"}, noon, time.Duration(0)
		for range 30 {
			s, wait = l.next(s, result{outcome: busy, synced: true, version: "7", at: now})
			now = now.Add(2*wait + time.Second)
		}
		require.Equal(t, longest, wait)
	}
}

// A watch that brought an event and lasted longer than the pause before it ends a row of failures, so the next pause is
// short again. A shorter one, and a silent one, do not.
func TestAGoodWatchEndsTheFailures(t *testing.T) {
	for _, c := range []struct {
		lasted time.Duration
		events int
		want   time.Duration
	}{
		{26*time.Second + 1, 1, base},
		{25600*time.Millisecond + 1, 1, base},
		{25600 * time.Millisecond, 1, 32 * base},
		{time.Minute, 0, 32 * base},
	} {
		s := state{do: watch, version: "7", failures: failureState{count: 5, at: noon.Add(-c.lasted)}}
		_, wait := testLimits().next(s, result{outcome: broken, synced: true, version: "8", events: c.events, lasted: c.lasted, at: noon})
		require.Equal(t, min(c.want, 25600*time.Millisecond), wait, "%+v", c)
	}
}

// hostile is a server with random answers and its own clock. It has one to three answers for each verb and repeats
// them, because a fault that repeats forever is worse than one that changes.
type hostile struct {
	l        *limits
	s        state
	now      time.Time
	waits    []time.Duration
	requests []attempt
	r        *rand.Rand
	answers  map[verb][]result
}

// attempt is one request.
type attempt struct {
	do verb
	at time.Time
}

func newHostile(seed uint64, outcomes []outcome) *hostile {
	r := rand.New(rand.NewPCG(seed, 7))
	flip := func() bool { return r.IntN(2) == 0 }
	s := state{
		do: allVerbs[r.IntN(len(allVerbs))], version: []string{"", "0", "7", "opaque"}[r.IntN(4)],
		list:      listState{need: consistency(r.IntN(3)), unlimited: flip()},
		watchList: watchListState{failures: r.IntN(3), after: noon.Add(time.Duration(r.IntN(1200)-600) * time.Second)},
		watches:   watchState{failures: r.IntN(3)},
		failures:  failureState{count: r.IntN(10), at: noon.Add(-time.Duration(r.IntN(300)) * time.Second)},

		serverPages: flip(),
	}
	if s.do == page && flip() {
		s.list.token = "t"
	}
	l := testLimits()
	l.watchList = r.IntN(4) > 0
	h := &hostile{l: l, s: s, now: noon, r: r, answers: map[verb][]result{}}
	for _, do := range allVerbs {
		for range 1 + r.IntN(3) {
			h.answers[do] = append(h.answers[do], h.result(do, outcomes))
		}
	}
	return h
}

// result returns a random result of a request.
func (h *hostile) result(do verb, outcomes []outcome) result {
	for {
		c := combination{do, outcomes[h.r.IntN(len(outcomes))], h.r.IntN(2) == 0, h.r.IntN(2) == 0}
		if !c.possible() {
			continue
		}
		res := result{outcome: c.outcome, synced: c.synced, paged: h.r.IntN(2) == 0, token: "t"}
		if c.events {
			res.events = 1
		}
		if c.synced {
			res.version = []string{"", "7", "8", "opaque"}[h.r.IntN(4)]
		}
		return res
	}
}

// step answers one request.
func (h *hostile) step() {
	h.requests = append(h.requests, attempt{h.s.do, h.now})
	answers := h.answers[h.s.do]
	res := answers[h.r.IntN(len(answers))]
	h.now = h.now.Add(time.Millisecond)
	res.at, res.lasted = h.now, time.Millisecond
	var wait time.Duration
	h.s, wait = h.l.next(h.s, res)
	h.waits = append(h.waits, wait)
	h.now = h.now.Add(wait)
}

// busiest returns the largest number of requests in a minute after from.
func (h *hostile) busiest(from time.Time) (most int) {
	for i, first := range h.requests {
		if first.at.Before(from) {
			continue
		}
		n := 0
		for _, next := range h.requests[i:] {
			if next.at.Sub(first.at) >= time.Minute {
				break
			}
			n++
		}
		most = max(most, n)
	}
	return most
}

var failures = []outcome{expired, tooLarge, busy, rejected, deadline, backwards, rolledBack, broken}

// seeds returns n, or a tenth of it with -short.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 10
	}
	return n
}

// If every request fails, the pauses grow to the longest and stay there, from every state and in every order of
// failures.
func TestFailuresSlowDown(t *testing.T) {
	for seed := range seeds(3000) {
		h := newHostile(seed, failures)
		for do, answers := range h.answers {
			for i := range answers {
				answers[i].events = 0
				answers[i].synced = do == watch
			}
		}
		for range 120 {
			h.step()
		}
		short := 0
		for _, wait := range h.waits[20:] {
			if wait != longest {
				require.Zero(t, wait, "seed %d", seed)
				short++
			}
		}
		// Pages follow a refused WatchList at once, every ten minutes.
		require.LessOrEqual(t, short, 8, "seed %d: %v", seed, h.waits)
		require.LessOrEqual(t, h.busiest(noon.Add(10*time.Minute)), 5, "seed %d", seed)
	}
}

// No server gets requests without pauses, except one that sends pages with objects: not if every list succeeds and
// every watch fails, not if every watch ends after one event, and not if it sends empty pages without an end.
func TestRequestsAreBounded(t *testing.T) {
	all := append([]outcome{done}, failures...)
	for seed := range seeds(6000) {
		h := newHostile(seed, all)
		for range 400 {
			h.step()
		}
		require.LessOrEqual(t, h.busiest(noon), 125, "seed %d, answers %+v", seed, h.answers)
	}
}

// If every watch fails, the pauses grow although the lists succeed.
func TestFailingWatchesSlowDown(t *testing.T) {
	for seed := range seeds(3000) {
		h := newHostile(seed, failures)
		h.answers[watchList] = append(h.answers[watchList][:0], result{outcome: failures[seed%8], synced: true, version: "7"})
		if h.answers[watchList][0].outcome == rolledBack {
			continue
		}
		h.answers[page] = []result{{outcome: done, synced: true, version: "7"}}
		for range 200 {
			h.step()
		}
		require.LessOrEqual(t, h.busiest(noon.Add(10*time.Minute)), 5, "seed %d, answers %+v", seed, h.answers)
	}
}

// The server pages every list, and every token has expired.
func TestExpiringTokensSlowDown(t *testing.T) {
	l := testLimits()
	l.watchList = false
	h := &hostile{l: l, s: l.first(noon), now: noon, r: rand.New(rand.NewPCG(1, 1)), answers: map[verb][]result{}}
	for i := range 200 {
		h.answers[page] = []result{{outcome: done, items: 500, token: "t", paged: true}}
		if i%2 == 1 {
			h.answers[page] = []result{{outcome: expired}}
		}
		h.step()
	}
	require.LessOrEqual(t, h.busiest(noon.Add(10*time.Minute)), 6)
}
