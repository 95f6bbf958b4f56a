package reflector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	allVerbs   = []verb{stream, page, watch, probe}
	allEndings = []ending{
		done, expired, tooLarge, unreachable, busy, rejected, deadline, backwards, rewound, cannotStream, broken,
	}
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

const (
	base    = 800 * time.Millisecond
	longest = 30 * time.Second
)

func testLimits() limits { return newLimits(true, 0, 0) }

// row is one line of the transition table: from a state and an outcome to a state and a wait. The outcome ended at noon
// after half a second, unless it says otherwise.
type row struct {
	name    string
	do      []verb
	from    state
	endings []ending
	o       outcome
	to      state
	wait    time.Duration
}

// combination is what the table has to cover.
type combination struct {
	do     verb
	ending ending
	synced bool
	events bool
}

// possible leaves out what no request can come to: a page has no events and is either the last one or has failed; a
// stream has events only once it is complete, and only before that can it turn out to be no stream; a watch has its state
// from the beginning, and a probe brings none.
func (c combination) possible() bool {
	if c.ending == cannotStream {
		return c.do == stream && !c.synced && !c.events
	}
	switch c.do {
	case page:
		return !c.events && (!c.synced || c.ending == done)
	case stream:
		return !c.events || c.synced
	case probe:
		return !c.synced && !c.events
	default:
		return c.synced
	}
}

func only(v verb) []verb { return []verb{v} }

// failed is s after its first failure at noon.
func failed(s state) state {
	s.attempt, s.failedAt = 1, noon
	return s
}

// away is s after a failure at noon that was an outage.
func away(s state) state {
	s = failed(s)
	s.away = true
	return s
}

// relisted is s after a failure at noon that led from a watch to a list.
func relisted(s state) state {
	s = failed(s)
	s.relisted = true
	return s
}

func (s state) with(f func(*state)) state {
	f(&s)
	return s
}

// table is the whole policy. Where a verb is left out of a state it is that of the row.
func table() []row {
	established := []verb{stream, watch} // a streaming list that is complete is a watch
	at7 := state{version: "7"}
	listing := state{do: page, version: "7", token: "t", pages: 2}
	watching := state{do: watch, version: "7"}
	paused := noon.Add(time.Minute)
	distrust := []ending{expired, tooLarge, backwards}
	return append(probeTable(), []row{
		// A page.
		{
			"a page that is not the last: the next one at once", only(page), listing,
			[]ending{done},
			outcome{token: "u", items: 5},
			state{do: page, version: "7", token: "u", pages: 3},
			0,
		},
		{
			"an empty page that is not the last: the next one, but there may be no end of these", only(page), listing,
			[]ending{done},
			outcome{token: "u"},
			state{do: page, version: "7", token: "u", pages: 3},
			base,
		},
		{
			"a page of any version though there may be a cache: page from now on", only(page),
			state{do: page},
			[]ending{done},
			outcome{token: "u", items: 5, paged: true},
			state{do: page, token: "u", pages: 1, serverPages: true},
			0,
		},
		{
			"the last page: watch from the list's version", only(page),
			listing.with(func(s *state) { s.consistent, s.rewound, s.unlimited, s.streamFailures = true, true, true, 2 }),
			[]ending{done},
			outcome{synced: true, version: "9"},
			state{do: watch, version: "9"},
			0,
		},
		{
			"the last page of a server that pages: it still does", only(page),
			listing.with(func(s *state) { s.serverPages, s.emptyWatches = true, 1 }),
			[]ending{done},
			outcome{synced: true, version: "9"},
			state{do: watch, version: "9", serverPages: true, emptyWatches: 1},
			0,
		},
		{
			"a list without a version: there is none to go back to", only(page), at7,
			[]ending{done},
			outcome{synced: true},
			state{do: watch},
			0,
		},
		{
			"the version of a list is refused or contradicted: the truth at once", only(page), at7, distrust,
			outcome{},
			state{do: page, version: "7", consistent: true},
			0,
		},
		{
			"the truth is refused or contradicted: again, with backoff", only(page),
			at7.with(func(s *state) { s.consistent = true }), distrust,
			outcome{},
			failed(state{do: page, version: "7", consistent: true}), base,
		},
		{
			"the truth is older: believe it, at once", only(page), at7.with(func(s *state) { s.consistent = true }),
			[]ending{rewound},
			outcome{},
			state{do: page, version: "7", consistent: true, rewound: true},
			0,
		},
		{
			"the truth is older though it was believed: again, with backoff", only(page),
			at7.with(func(s *state) { s.consistent, s.rewound = true, true }),
			[]ending{rewound},
			outcome{},
			failed(state{do: page, version: "7", consistent: true, rewound: true}), base,
		},
		{
			"a token expires under way: one unpaginated list at once", only(page), listing,
			[]ending{expired},
			outcome{},
			state{do: page, version: "7", consistent: true, unlimited: true},
			0,
		},
		{
			"a token of the truth expires under way: one unpaginated list at once", only(page),
			listing.with(func(s *state) { s.consistent = true }),
			[]ending{expired},
			outcome{},
			state{do: page, version: "7", consistent: true, unlimited: true},
			0,
		},
		{
			"an unpaginated list is paged all the same, and its token expires: with backoff", only(page),
			listing.with(func(s *state) { s.consistent, s.unlimited = true, true }),
			[]ending{expired},
			outcome{},
			failed(state{do: page, version: "7", consistent: true, unlimited: true}), base,
		},
		{
			"a list that turns out to be contradicted on its last page: the truth, in pages", only(page), listing,
			[]ending{tooLarge, backwards},
			outcome{},
			state{do: page, version: "7", consistent: true},
			0,
		},
		{
			"no judgement on a first page: try to stream again", only(page), at7,
			[]ending{busy, unreachable},
			outcome{},
			away(state{do: stream, version: "7"}), base,
		},
		{
			"no judgement on a later page: the same page again", only(page), listing,
			[]ending{busy, unreachable},
			outcome{},
			away(listing), base,
		},
		{
			"a page is refused, stalls or breaks: a new list, streamed if that is not paused", only(page), at7,
			[]ending{rejected, deadline, broken},
			outcome{},
			failed(state{do: stream, version: "7"}), base,
		},
		{
			"a page is refused, stalls or breaks: a new list, in pages while streaming is paused", only(page),
			at7.with(func(s *state) { s.streamAfter = paused }),
			[]ending{rejected, deadline, broken},
			outcome{},
			failed(state{do: page, version: "7", streamAfter: paused}), base,
		},
		{
			"a later page stalls or breaks: from the first one", only(page),
			listing.with(func(s *state) { s.streamAfter = paused }),
			[]ending{deadline, broken},
			outcome{},
			failed(state{do: page, version: "7", streamAfter: paused}), base,
		},
		{
			"a token is refused: one unpaginated list", only(page), listing.with(func(s *state) { s.streamAfter = paused }),
			[]ending{rejected},
			outcome{},
			failed(state{do: page, version: "7", streamAfter: paused, unlimited: true}), base,
		},

		// A streaming list that did not come to its end.
		{"no judgement: stream again", only(stream), at7, []ending{busy, unreachable}, outcome{}, away(state{version: "7"}), base},
		{
			"the version is refused or contradicted: the truth at once", only(stream), at7, distrust,
			outcome{},
			state{version: "7", consistent: true},
			0,
		},
		{
			"the truth is refused or contradicted: again, with backoff", only(stream), at7.with(func(s *state) { s.consistent = true }), distrust,
			outcome{},
			failed(state{version: "7", consistent: true}), base,
		},
		{
			"the truth is older: believe it, at once", only(stream), at7.with(func(s *state) { s.consistent = true }),
			[]ending{rewound},
			outcome{},
			state{version: "7", consistent: true, rewound: true},
			0,
		},
		{
			"the server does not stream, or stalls: pages at once, and no streaming for ten minutes", only(stream),
			at7.with(func(s *state) { s.streamFailures = 2 }),
			[]ending{rejected, deadline, cannotStream},
			outcome{},
			state{do: page, version: "7", streamAfter: noon.Add(10 * time.Minute)},
			0,
		},
		{
			"it ends early or breaks: stream again", only(stream), at7,
			[]ending{done, broken},
			outcome{},
			failed(state{version: "7", streamFailures: 1}), base,
		},
		{
			"it ends early or breaks for the third time: pages, and no streaming for ten minutes", only(stream),
			at7.with(func(s *state) { s.streamFailures = 2 }),
			[]ending{done, broken},
			outcome{},
			failed(state{do: page, version: "7", streamAfter: noon.Add(10 * time.Minute)}), base,
		},

		// A watch, or a streaming list that came to its end.
		{
			"a watch that lasted ends in good order: the next one at once", established,
			watching.with(func(s *state) { s.emptyWatches, s.silence = 2, time.Hour }),
			[]ending{done},
			outcome{synced: true, version: "7", lasted: time.Second, heard: true},
			watching, 0,
		},
		{
			"a watch that lasted ends in good order after events: the next one at once", established,
			watching.with(func(s *state) { s.emptyWatches, s.silence = 2, time.Hour }),
			[]ending{done},
			outcome{synced: true, version: "9", events: 1, lasted: time.Minute},
			state{do: watch, version: "9"},
			0,
		},
		{
			"a short watch with events: not more than one a second", established, watching.with(func(s *state) { s.emptyWatches = 2 }),
			[]ending{done},
			outcome{synced: true, version: "9", events: 1},
			state{do: watch, version: "9"},
			500 * time.Millisecond,
		},
		{
			"a short watch without events has failed", established, watching,
			[]ending{done},
			outcome{synced: true, version: "7"},
			failed(state{do: watch, version: "7", emptyWatches: 1, silence: 500 * time.Millisecond}), base,
		},
		{
			"the version is gone: a list at once", established, watching.with(func(s *state) { s.emptyWatches = 2 }),
			[]ending{expired},
			outcome{synced: true, version: "7"},
			relisted(state{version: "7"}), 0,
		},
		{
			"the version is gone after events: a list at once", established, watching,
			[]ending{expired},
			outcome{synced: true, version: "9", events: 3},
			relisted(state{version: "9"}), 0,
		},
		{
			"the version is gone while streaming is paused: a list in pages", established, watching.with(func(s *state) { s.streamAfter = paused }),
			[]ending{expired},
			outcome{synced: true, version: "7"},
			relisted(state{do: page, version: "7", streamAfter: paused}), 0,
		},
		{
			"the server contradicts itself: the truth at once", established, watching.with(func(s *state) { s.emptyWatches = 2 }),
			[]ending{backwards, rewound},
			outcome{synced: true, version: "7"},
			relisted(state{version: "7", consistent: true}), 0,
		},
		{
			"the server contradicts itself after events: the truth at once", established, watching,
			[]ending{backwards, rewound},
			outcome{synced: true, version: "9", events: 1},
			relisted(state{version: "9", consistent: true}), 0,
		},
		{
			"the version is gone after an outage: a list at once, and spread", established,
			watching.with(func(s *state) { s.attempt, s.failedAt, s.away = 9, noon, true }),
			[]ending{expired},
			outcome{synced: true, version: "7"},
			state{version: "7", attempt: 10, failedAt: noon, relisted: true, spread: 5 * time.Second},
			0,
		},
		{
			"the version is gone again after an outage: a list with backoff", established,
			watching.with(func(s *state) { s.attempt, s.failedAt, s.away, s.relisted = 2, noon, true, true }),
			[]ending{expired},
			outcome{synced: true, version: "7"},
			state{version: "7", attempt: 3, failedAt: noon, relisted: true},
			2 * base,
		},
		{
			"the version is gone after failures of another kind: a list with backoff", established,
			watching.with(func(s *state) { s.attempt, s.failedAt = 2, noon }),
			[]ending{expired},
			outcome{synced: true, version: "7"},
			state{version: "7", attempt: 3, failedAt: noon, relisted: true},
			2 * base,
		},
		{
			"the version is gone long after an outage: a list at once", established,
			watching.with(func(s *state) { s.attempt, s.failedAt, s.away = 9, noon.Add(-time.Hour), true }),
			[]ending{expired},
			outcome{synced: true, version: "7"},
			relisted(state{version: "7"}), 0,
		},
		{
			"no judgement: a probe before the same watch", established, watching.with(func(s *state) { s.emptyWatches = 2 }),
			[]ending{busy, unreachable},
			outcome{synced: true, version: "7"},
			away(state{do: probe, version: "7", emptyWatches: 2}), base,
		},
		{
			"no judgement after events: a probe before the next watch", established, watching.with(func(s *state) { s.emptyWatches = 2 }),
			[]ending{busy, unreachable},
			outcome{synced: true, version: "9", events: 1},
			away(state{do: probe, version: "9"}), base,
		},
		{
			"any other end: resume", established, watching.with(func(s *state) { s.silence = time.Minute }),
			[]ending{tooLarge, rejected, deadline, broken},
			outcome{synced: true, version: "7"},
			failed(state{do: watch, version: "7", emptyWatches: 1, silence: time.Minute + 500*time.Millisecond}), base,
		},
		{
			"any other end after events: resume", established, watching.with(func(s *state) { s.emptyWatches = 2 }),
			[]ending{tooLarge, rejected, deadline, broken},
			outcome{synced: true, version: "9", events: 1},
			failed(state{do: watch, version: "9"}), base,
		},
		{
			"the third watch without an event: a list", established, watching.with(func(s *state) { s.emptyWatches = 2 }),
			[]ending{done, tooLarge, rejected, deadline, broken},
			outcome{synced: true, version: "7"},
			failed(state{version: "7"}), base,
		},
		{
			"no version to resume from: a list, whatever the end", established,
			state{do: watch},
			[]ending{broken, rejected},
			outcome{synced: true, events: 1},
			failed(state{}), base,
		},
		{
			"no version to resume from: a list, after no judgement too", established,
			state{do: watch},
			[]ending{busy, unreachable},
			outcome{synced: true, events: 1},
			away(state{}), base,
		},
		{
			"no version to resume from: a list, whatever the end, in good order too", established,
			state{do: watch, version: "0"},
			[]ending{done},
			outcome{synced: true, version: "0", lasted: time.Minute},
			state{version: "0"},
			0,
		},
	}...)
}

// each calls f with every single transition of the table.
func (r row) each(f func(c combination, from state, o outcome)) {
	for _, do := range r.do {
		for _, e := range r.endings {
			from, o := r.from, r.o
			from.do, o.ending, o.at = do, e, noon
			if o.lasted == 0 {
				o.lasted = 500 * time.Millisecond
			}
			f(combination{do, e, o.synced, o.events > 0}, from, o)
		}
	}
}

func TestNext(t *testing.T) {
	for _, r := range table() {
		r.each(func(c combination, from state, o outcome) {
			to, wait := testLimits().next(from, o)
			require.Equal(t, r.to, to, "%s: %+v", r.name, c)
			require.Equal(t, r.wait, wait, "%s: %+v", r.name, c)
		})
	}
}

func TestNextTableIsComplete(t *testing.T) {
	covered := map[combination]bool{}
	for _, r := range table() {
		r.each(func(c combination, _ state, _ outcome) {
			require.True(t, c.possible(), "%s: %+v", r.name, c)
			covered[c] = true
		})
	}
	for _, do := range allVerbs {
		for _, e := range allEndings {
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
	require.Equal(t, state{do: stream}, l.first(noon))
	l.streaming = false
	require.Equal(t, state{do: page}, l.first(noon))
}

// Whatever the server asked for is the least that is waited, in every row.
func TestNextHonoursRetryAfter(t *testing.T) {
	for _, r := range table() {
		r.each(func(c combination, from state, o outcome) {
			if o.ending == done {
				return
			}
			o.retryAfter = 17 * time.Second
			to, wait := testLimits().next(from, o)
			require.Equal(t, 17*time.Second, wait, "%s: %+v", r.name, c)
			require.Equal(t, r.to, to)

			from.attempt, from.failedAt, from.away = 10, noon, false
			if _, wait = testLimits().next(from, o); to.attempt > 0 {
				require.Equal(t, longest, wait, "%s: %+v", r.name, c)
			}
		})
	}
}

func TestStreamingReturnsAfterItsPause(t *testing.T) {
	l := testLimits()
	s := l.giveUpStreaming(state{version: "7"}, noon)
	for after, want := range map[time.Duration]verb{0: page, 10*time.Minute - 1: page, 10 * time.Minute: stream, time.Hour: stream} {
		s, _ := l.next(s.listed(), outcome{ending: expired, synced: true, version: "7", at: noon.Add(after)})
		require.Equal(t, want, s.do, after)
	}
	l.streaming = false
	s, _ = l.next(s.listed(), outcome{ending: expired, synced: true, version: "7", at: noon.Add(time.Hour)})
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

func TestBackoffStartsAnewAfterTwoGoodMinutes(t *testing.T) {
	l := testLimits()
	s := state{do: watch, version: "7", attempt: 5, failedAt: noon}
	o := outcome{ending: busy, synced: true, version: "7", at: noon.Add(2 * time.Minute)}
	_, wait := l.next(s, o)
	require.Equal(t, 25600*time.Millisecond, wait)
	o.at = o.at.Add(1)
	s, wait = l.next(s, o)
	require.Equal(t, base, wait)
	require.Equal(t, 1, s.attempt)
}

// A pause of the longest kind, with all of its jitter, is not a time in which all was well.
func TestBackoffMaximumIsKept(t *testing.T) {
	for _, longest := range []time.Duration{time.Second, 30 * time.Second, 10 * time.Minute} {
		l := newLimits(true, 0, longest)
		s, now, wait := state{do: watch, version: "7"}, noon, time.Duration(0)
		for range 30 {
			s, wait = l.next(s, outcome{ending: busy, synced: true, version: "7", at: now})
			now = now.Add(2*wait + time.Second)
		}
		require.Equal(t, longest, wait)
	}
}

// hostile is a server that sends whatever it likes, in time that does not pass by itself. It has a few answers for each
// verb, as real trouble does: one that repeats for ever is worse than one that changes.
type hostile struct {
	l       limits
	s       state
	now     time.Time
	waits   []time.Duration
	asked   []asked
	r       *rand.Rand
	answers map[verb][]outcome
}

// asked is one request.
type asked struct {
	do verb
	at time.Time
}

func newHostile(seed uint64, endings []ending) *hostile {
	r := rand.New(rand.NewPCG(seed, 7))
	flip := func() bool { return r.IntN(2) == 0 }
	s := state{
		do: allVerbs[r.IntN(len(allVerbs))], version: []string{"", "0", "7", "opaque"}[r.IntN(4)],
		consistent: flip(), rewound: flip(), unlimited: flip(), serverPages: flip(),
		streamFailures: r.IntN(3), emptyWatches: r.IntN(3), attempt: r.IntN(10),
		failedAt: noon.Add(-time.Duration(r.IntN(300)) * time.Second), streamAfter: noon.Add(time.Duration(r.IntN(1200)-600) * time.Second),
	}
	if s.do == page && flip() {
		s.token, s.pages = "t", 1+r.IntN(3)
	}
	l := testLimits()
	l.streaming = r.IntN(4) > 0
	h := &hostile{l: l, s: s, now: noon, r: r, answers: map[verb][]outcome{}}
	for _, do := range allVerbs {
		for range 1 + r.IntN(3) {
			h.answers[do] = append(h.answers[do], h.outcome(do, endings))
		}
	}
	return h
}

// outcome is one that a request may come to.
func (h *hostile) outcome(do verb, endings []ending) outcome {
	for {
		c := combination{do, endings[h.r.IntN(len(endings))], h.r.IntN(2) == 0, h.r.IntN(2) == 0}
		if !c.possible() {
			continue
		}
		o := outcome{ending: c.ending, synced: c.synced, paged: h.r.IntN(2) == 0, token: "t"}
		if c.events {
			o.events = 1
		}
		if c.synced {
			o.version = []string{"", "7", "8", "opaque"}[h.r.IntN(4)]
		}
		return o
	}
}

// step answers one request.
func (h *hostile) step() {
	h.asked = append(h.asked, asked{h.s.do, h.now})
	answers := h.answers[h.s.do]
	o := answers[h.r.IntN(len(answers))]
	h.now = h.now.Add(time.Millisecond)
	o.at, o.lasted = h.now, time.Millisecond
	var wait time.Duration
	h.s, wait = h.l.next(h.s, o)
	h.waits = append(h.waits, wait)
	h.now = h.now.Add(wait)
}

// busiest is the most requests in any minute from some time on.
func (h *hostile) busiest(from time.Time) (most int) {
	for i, first := range h.asked {
		if first.at.Before(from) {
			continue
		}
		n := 0
		for _, next := range h.asked[i:] {
			if next.at.Sub(first.at) >= time.Minute {
				break
			}
			n++
		}
		most = max(most, n)
	}
	return most
}

var failures = []ending{expired, tooLarge, busy, rejected, deadline, backwards, rewound, broken}

// Where nothing ever succeeds the pauses grow to the longest and stay there, from every state and in every order of
// failures.
func TestFailuresSlowDown(t *testing.T) {
	for seed := range uint64(3000) {
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
		for i, wait := range h.waits[20:] {
			if wait != longest && h.asked[20+i].do != probe { // one that is refused is followed by the watch at once
				require.Zero(t, wait, "seed %d", seed)
				short++
			}
		}
		// A streaming list is given up at once, each time that it was tried again after ten minutes.
		require.LessOrEqual(t, short, 8, "seed %d: %v", seed, h.waits)
		require.LessOrEqual(t, h.busiest(noon.Add(10*time.Minute)), 5, "seed %d", seed)
	}
}

// Whatever a server does, short of sending pages full of objects, it is not asked without a pause: not when each list
// succeeds and no watch does, not when each watch brings one event and ends, not when it sends empty pages without end.
func TestRequestsAreBounded(t *testing.T) {
	all := append([]ending{done}, failures...)
	for seed := range uint64(6000) {
		h := newHostile(seed, all)
		for range 400 {
			h.step()
		}
		require.LessOrEqual(t, h.busiest(noon), 125, "seed %d, answers %+v", seed, h.answers)
	}
}

// The same where every watch fails: lists that succeed do not make up for that.
func TestFailingWatchesSlowDown(t *testing.T) {
	for seed := range uint64(3000) {
		h := newHostile(seed, failures)
		h.answers[stream] = append(h.answers[stream][:0], outcome{ending: failures[seed%8], synced: true, version: "7"})
		if h.answers[stream][0].ending == rewound {
			continue
		}
		h.answers[page] = []outcome{{ending: done, synced: true, version: "7"}}
		for range 200 {
			h.step()
		}
		require.LessOrEqual(t, h.busiest(noon.Add(10*time.Minute)), 5, "seed %d, answers %+v", seed, h.answers)
	}
}

// A server that pages whatever it is asked for, and forgets each token at once.
func TestExpiringTokensSlowDown(t *testing.T) {
	l := testLimits()
	l.streaming = false
	h := &hostile{l: l, s: l.first(noon), now: noon, r: rand.New(rand.NewPCG(1, 1)), answers: map[verb][]outcome{}}
	for i := range 200 {
		h.answers[page] = []outcome{{ending: done, items: 500, token: "t", paged: true}}
		if i%2 == 1 {
			h.answers[page] = []outcome{{ending: expired}}
		}
		h.step()
	}
	require.LessOrEqual(t, h.busiest(noon.Add(10*time.Minute)), 6)
}
