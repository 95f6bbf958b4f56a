package reflector_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

func TestRewatch(t *testing.T) {
	bubble(t, "a watch ends without an error: the next one at once, from the version reached", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(added(at("a", "7")), 5*time.Minute), watch(5*time.Minute, bookmark("7")), watch(stay))
		b.pass(time.Hour / 4)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "5m0s watch rv=7", "10m0s watch rv=7")
		require.NoError(t, b.Status().LastError)
	})
	bubble(t, "bookmarks advance the version, in the store too", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(bookmark("8"), bookmark("8"), bookmark("11"), time.Second), watch(stay))
		b.pass(2 * time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "1s watch rv=11")
		b.expectStore("replace [] at 5", "bookmark 8", "bookmark 8", "bookmark 11")
		require.Equal(t, 3, b.Status().Counters.Bookmarks)
	})
	bubble(t, "a server that closes after each event gets one request a second", func(t *testing.T) {
		script := script{list("5")}
		for _, version := range []string{"6", "7", "8", "9"} {
			script = append(script, watch(added(at("a", version))))
		}
		b := run(t, paged(), append(script, watch(stay))...)
		b.pass(time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "1s watch rv=6", "2s watch rv=7", "3s watch rv=8", "4s watch rv=9")
		require.Zero(t, b.Status().Attempt)
	})
	bubble(t, "a watch with known states only counts as a watch without events", func(t *testing.T) {
		old := watch(bookmark("5"), added(at("a", "3")), modified(at("a", "2")), deleted(at("unknown", "1")))
		b := run(t, paged(), list("5", at("a", "3")), old, old, old, list("9"), watch(stay))
		b.pass(time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "800ms watch rv=5", "2.4s watch rv=5",
			"5.6s list rv=5 NotOlderThan", "5.6s watch rv=9")
		require.ErrorIs(t, b.Status().LastError, reflector.ErrEndedEarly)
	})
	// After these errors client-go lists; here, one watch follows.
	for name, end := range map[string][]any{
		"reset": {errReset}, "500": {errInternal}, "forbidden": {errForbid}, "too large": {errTooLarge()}, "a short watch": nil,
	} {
		bubble(t, name+": the same watch again", func(t *testing.T) {
			b := run(t, paged(), list("5"), watch(end...), watch(end...), watch(added(at("a", "6")), stay))
			b.pass(time.Minute)
			require.NoError(t, b.Status().Err, "the first event clears the error")
			require.Error(t, b.Status().LastError)
			b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "800ms watch rv=5", "2.4s watch rv=5")
		})
		bubble(t, name+", three times without an event: a list", func(t *testing.T) {
			b := run(t, paged(), list("5"), watch(end...), watch(end...), watch(end...), list("9"), watch(stay))
			b.pass(time.Minute)
			b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "800ms watch rv=5", "2.4s watch rv=5",
				"5.6s list rv=5 NotOlderThan", "5.6s watch rv=9")
		})
		bubble(t, name+", with an event in between: no list", func(t *testing.T) {
			event := append([]any{added(at("a", "6"))}, end...)
			b := run(t, paged(), list("5"), watch(end...), watch(end...), watch(event...), watch(end...), watch(stay))
			b.pass(time.Minute)
			for _, request := range b.lw.asked().requests[1:] {
				require.Contains(t, request, "watch")
			}
		})
	}
	bubble(t, "refused never leads to a list", func(t *testing.T) {
		script := script{list("5")}
		for range 40 {
			script = append(script, watch(errRefused))
		}
		b := run(t, paged(), append(script, watch(stay))...)
		b.pass(23 * time.Minute)
		require.Empty(t, b.lw.asked().script)
		for _, request := range b.lw.asked().requests[1:] {
			require.NotContains(t, request, "list")
		}
		require.Equal(t, 1, b.Status().Counters.Lists)
	})
	bubble(t, "the end of a WatchList confirms its version: no probe after a silent minute", func(t *testing.T) {
		b := run(t, options{}, watchList(initialEnd("5"), 2*time.Minute), watch(stay))
		b.pass(3 * time.Minute)
		b.expectRequests("0s watchlist rv= NotOlderThan", "2m0s watch rv=5")
	})
	bubble(t, "410: a list at once", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), initialEnd("5"), bookmark("7"), time.Minute, errExpired),
			watchList(added(at("b", "8")), initialEnd("9"), stay))
		b.pass(2 * time.Minute)
		b.expectRequests("0s watchlist rv= NotOlderThan", "1m0s watchlist rv=7 NotOlderThan")
		b.expectStore("replace [a@1] at 5", "bookmark 7", "replace [b@8] at 9")
	})
	bubble(t, "the reflector ends a watch half a minute after its timeout", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(added(at("a", "6")), stay), watch(stay), watch(stay))
		b.pass(12 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "5m30s watch rv=6", "11m0s watch rv=6")
		require.NoError(t, b.Status().LastError, "the watch lasted as long as requested")
	})
	bubble(t, "a watch that ends with ErrOverdue has not failed", func(t *testing.T) {
		overdue := fmt.Errorf("watch pods: %w", api.ErrOverdue)
		b := run(t, paged(), list("5"), watch(time.Minute, overdue), watch(added(at("a", "6")), overdue), watch(stay))
		b.pass(2 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "1m0s watch rv=5", "1m1s watch rv=6")
		require.NoError(t, b.Status().LastError)
	})
	bubble(t, "an event of an unknown type", func(t *testing.T) {
		unknown := watch(api.Event[*thing]{Type: apiwatch.EventType("PRUNED"), Object: at("a", "6"), ResourceVersion: "6"}, stay)
		b := run(t, paged(), list("5"), unknown, unknown, unknown, list("9", at("a", "6")), watch(stay))
		require.ErrorIs(t, b.Status().LastError, reflector.ErrUnknownEvent)
		b.pass(time.Minute)
		b.expectStore("replace [] at 5", "replace [a@6] at 9")
	})
}

// A server may fail at the same event of every watch, for example because it cannot decrypt the object. A list follows,
// which may be newer than the version of the watch, for every page size.
func TestPoisonedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := paged()
		o.PageSize = 100
		b := run(t, o, list("5", at("a", "1"), at("unreadable", "2")),
			watch(errInternal), watch(errInternal), watch(errInternal), list("7", at("a", "1")), watch(stay))
		b.pass(time.Minute)
		b.expectRequests("0s list rv=0 limit=100", "0s watch rv=5", "800ms watch rv=5", "2.4s watch rv=5",
			"5.6s list rv=5 limit=100 NotOlderThan", "5.6s watch rv=7")
		require.Nil(t, b.known("unreadable"))
	})
}

// OnError gets the error of every failed request, also of a WatchList.
func TestOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []error
		o := options{Hooks: reflector.Hooks{OnError: func(err error) { reported = append(reported, err) }}}
		b := run(t, o, watchList(errInvalid), list("5"), watch(added(at("a", "6")), errReset), watch(), watch(errExpired),
			failedList(errInternal), list("9"), watch(stay))
		b.pass(time.Minute)
		require.Equal(t, []error{errInvalid, errReset, reflector.ErrEndedEarly, errExpired, errInternal}, reported)
	})
}

func TestOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		o := options{Hooks: reflector.Hooks{OnRequest: func(r reflector.Request) {
			reported = append(reported, fmt.Sprintf("%s %s complete=%v events=%d wait=%v err=%v", r.Verb, r.Outcome, r.Complete, r.Events, r.Wait, r.Err != nil))
		}}}
		b := run(t, o, watchList(errInvalid), list("5"), watch(added(at("a", "6")), errReset), watch(errExpired), failedList(errInternal), watch(stay))
		b.pass(4 * time.Second)
		require.Equal(t, []string{
			"watchlist rejected complete=false events=0 wait=0s err=true",
			"list done complete=true events=0 wait=0s err=false",
			"watch broken complete=false events=1 wait=800ms err=true",
			"watch expired complete=false events=0 wait=800ms err=true",
			"list broken complete=false events=0 wait=3.2s err=true",
		}, reported)
	})
}

// Request.Events counts what follows the complete state and advances the version or changes an object.
func TestEventsOfARequest(t *testing.T) {
	changed := at("a", "3")
	changed.content = "changed"
	for name, c := range map[string]struct {
		steps []any
		want  int
	}{
		"nothing":                              {nil, 0},
		"before the end of the WatchList":      {[]any{modified(at("a", "5")), bookmark("6"), modified(at("a", "5")), initialEnd("9")}, 0},
		"changes":                              {[]any{initialEnd("5"), added(at("b", "6")), modified(at("b", "7")), deleted(at("b", "8"))}, 3},
		"a bookmark, and the same again":       {[]any{initialEnd("5"), bookmark("6"), bookmark("6")}, 1},
		"the same change again":                {[]any{initialEnd("5"), modified(at("a", "6")), modified(at("a", "6"))}, 1},
		"a known state that is newer":          {[]any{initialEnd("2"), added(at("a", "3"))}, 1},
		"a change of content, not of version":  {[]any{initialEnd("5"), modified(changed)}, 1},
		"an object of another name, malformed": {[]any{initialEnd("5"), modified(at("a/b", "6"))}, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			events := -1
			o := options{Hooks: reflector.Hooks{OnRequest: func(r reflector.Request) { events = r.Events }}}
			run(t, o, watchList(append([]any{added(at("a", "3"))}, append(c.steps, errReset)...)...))
			require.Equal(t, c.want, events)
		})
	}
}

func TestBackoffSequence(t *testing.T) {
	refused := func(n int) (s script) {
		for range n {
			s = append(s, watchList(errRefused))
		}
		return s
	}
	bubble(t, "without jitter", func(t *testing.T) {
		b := run(t, options{}, append(refused(9), watchList(stay))...)
		b.pass(2*time.Minute + 40*time.Second)
		const rest = " watchlist rv= NotOlderThan"
		b.expectRequests("0s"+rest, "800ms"+rest, "2.4s"+rest, "5.6s"+rest, "12s"+rest, "24.8s"+rest, "50.4s"+rest,
			"1m20.4s"+rest, "1m50.4s"+rest, "2m20.4s"+rest)
	})
	bubble(t, "with jitter, up to twice the pause", func(t *testing.T) {
		b := run(t, options{Tuning: reflector.Tuning{Rand: func() float64 { return 0.5 }}}, append(refused(3), watchList(stay))...)
		b.pass(20 * time.Second)
		const rest = " watchlist rv= NotOlderThan"
		b.expectRequests("0s"+rest, "1.2s"+rest, "3.6s"+rest, "8.4s"+rest)
	})
	bubble(t, "other options", func(t *testing.T) {
		b := run(t, options{Tuning: reflector.Tuning{BackoffBase: time.Second, BackoffMax: 3 * time.Second}}, append(refused(4), watchList(stay))...)
		b.pass(20 * time.Second)
		const rest = " watchlist rv= NotOlderThan"
		b.expectRequests("0s"+rest, "1s"+rest, "3s"+rest, "6s"+rest, "9s"+rest)
	})
	bubble(t, "the pause is at least Retry-After", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(errTooMany(10)), watch(errTooMany(1)), watch(stay))
		require.Equal(t, b.lw.start.Add(10*time.Second), b.Status().NextAttempt)
		require.Equal(t, reflector.Waiting, b.Status().Phase)
		b.pass(time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "10s watch rv=5", "11.6s watch rv=5")
		require.True(t, b.Status().NextAttempt.IsZero())
	})
	bubble(t, "from the base after two good minutes", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(errReset), watch(errReset), watch(added(at("a", "6")), errReset),
			watch(2*time.Minute, errReset), watch(time.Minute, errReset), watch(stay))
		b.pass(5 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "800ms watch rv=5", "2.4s watch rv=5", "5.6s watch rv=6",
			"2m6.4s watch rv=6", "3m8s watch rv=6")
	})
	// Every list succeeds, and every watch fails.
	bubble(t, "every watch brings a bookmark and a 410", func(t *testing.T) {
		s := script{}
		for i := range 60 {
			s = append(s, list(strconv.Itoa(2*i+1)), watch(bookmark(strconv.Itoa(2*i+2)), errExpired))
		}
		b := run(t, paged(), s...)
		b.pass(time.Minute)
		lists := b.Status().Counters.Lists
		require.Equal(t, 8, lists, "at 0, 0, 0.8, 2.4, 5.6, 12, 24.8 and 50.4 seconds")
		b.pass(10 * time.Minute)
		require.Equal(t, lists+20, b.Status().Counters.Lists, "two a minute")
	})
}

func TestRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, options{}, watchList(stay))
		require.PanicsWithValue(t, "reflector: Run was called twice; create a new Reflector for each Run", func() { _ = b.Run(t.Context()) })
	})
}

// Cancellation ends Run and its request at once, also during a pause that the server asked for. The bubble fails if a
// goroutine is left.
func TestCancelAnywhere(t *testing.T) {
	for name, script := range map[string]script{
		"waiting for a WatchList":             {watchList(stay)},
		"in the middle of a WatchList":        {watchList(added(at("a", "1")), stay)},
		"after its initial objects":           {watchList(added(at("a", "1")), modified(at("a", "2")), stay)},
		"after a WatchList":                   {watchList(initialEnd("5"), stay)},
		"backing off after a WatchList":       {watchList(errRefused)},
		"Retry-After of a WatchList":          {watchList(errTooMany(3600))},
		"waiting for a page":                  {watchList(errInvalid), failedList(stay)},
		"in the middle of a page":             {watchList(errInvalid), failedList(at("a", "1"), stay)},
		"in a later page":                     {watchList(errInvalid), pageOf("5", "t", at("a", "1")), failedList(stay)},
		"backing off after a page":            {watchList(errInvalid), failedList(errInternal)},
		"Retry-After in the middle of a list": {watchList(errInvalid), pageOf("5", "t", at("a", "1")), failedList(errTooMany(3600))},
		"between empty pages":                 {watchList(errInvalid), pageOf("5", "t")},
		"waiting for events":                  {watchList(errInvalid), list("5"), watch(stay)},
		"after an event":                      {watchList(errInvalid), list("5"), watch(added(at("a", "6")), stay)},
		"backing off after a watch":           {watchList(errInvalid), list("5"), watch(errReset)},
		"after a short watch with an event":   {watchList(errInvalid), list("5"), watch(added(at("a", "6")))},
		"Retry-After of a watch":              {watchList(errInvalid), list("5"), watch(errTooMany(3600))},
		"Retry-After of a list":               {watchList(errInvalid), list("5"), watch(errExpired), failedList(errTooMany(3600))},
	} {
		bubble(t, name, func(t *testing.T) {
			run(t, options{}, script...)
		})
		bubble(t, name+", a little later", func(t *testing.T) {
			b := run(t, options{}, script...)
			b.pass(300 * time.Millisecond)
		})
	}
}

// A callback may end the context. No request follows, also if there is no pause.
func TestNoRequestAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var end func()
		o := options{Hooks: reflector.Hooks{OnRequest: func(reflector.Request) { end() }}}
		b := run(t, o, watchList(ask(func(b *bench) { end = b.cancel }), errInvalid))
		require.NoError(t, b.wait())
		require.Len(t, b.lw.asked().requests, 1)
	})
}

// The context of a request ends with the request. Otherwise each watch would leave one in the context of Run.
func TestContextsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, options{}, watchList(errInvalid), list("5"), watch(added(at("a", "6"))), watch(stay))
		b.pass(2 * time.Second)
		require.Len(t, b.lw.asked().contexts, 4)
		for i, ctx := range b.lw.asked().contexts {
			require.Equal(t, i < 3, ctx.Err() != nil, i)
		}
	})
}

// The staged objects are released when the list fails, not only at the next list, which may be much later.
func TestStagedObjectsAreReleased(t *testing.T) {
	for name, script := range map[string]script{
		"list":      {watchList(errInvalid), pageOf("5", "t", at("a", "1")), failedList(errReset), failedList(stay)},
		"WatchList": {watchList(added(at("a", "1")), errReset), watchList(stay)},
	} {
		bubble(t, name, func(t *testing.T) {
			var staged weak.Pointer[thing]
			o := options{Transform: func(t *thing) (*thing, error) { staged = weak.Make(t); return t, nil }}
			b := run(t, o, script...)
			require.Equal(t, reflector.Waiting, b.Status().Phase)
			b.lw.forget()
			runtime.GC()
			require.Nil(t, staged.Value())
		})
	}
}

func TestStatus(t *testing.T) {
	bubble(t, "of every request", func(t *testing.T) {
		var got []string
		note := ask(func(b *bench) {
			s := b.Status()
			got = append(got, fmt.Sprintf("%s %d of %d, rv=%s", s.Phase, s.Objects, s.Remaining, s.ResourceVersion))
		})
		remaining := int64(3)
		first := pageOf("5", "t", note, at("a", "1"), note)
		first.steps[len(first.steps)-1] = withRemaining(first.steps[len(first.steps)-1], &remaining)
		b := run(t, options{},
			watchList(note, added(at("a", "1")), added(at("b", "1")), note, errReset), watchList(note, errInvalid),
			first, pageOf("5", "u", note, at("b", "1"), note), list("5", note), watch(note, added(at("c", "6")), note, errExpired),
			list("7", note), watch(bookmark("8"), time.Minute), watch(note, stay))
		b.pass(3 * time.Minute)
		require.Equal(t, []string{
			"WatchList 0 of -1, rv=", "WatchList 2 of -1, rv=", "WatchList 0 of -1, rv=",
			"listing 0 of -1, rv=", "listing 1 of -1, rv=", "listing 1 of 3, rv=", "listing 2 of 3, rv=", "listing 2 of -1, rv=",
			"watching 2 of 0, rv=5", "watching 2 of 0, rv=6", "listing 0 of -1, rv=6",
			"watching 0 of 0, rv=8",
		}, got)
	})
	bubble(t, "a bookmark clears the error", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(errReset), watch(bookmark("6"), stay))
		b.pass(time.Second)
		require.NoError(t, b.Status().Err)
	})
	bubble(t, "a watch that ends without an error clears the error, even if it was silent", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(errReset), watch(5*time.Minute), probed("5"), watch(stay))
		b.pass(time.Minute)
		require.ErrorIs(t, b.Status().Err, errReset)
		b.pass(5 * time.Minute)
		require.NoError(t, b.Status().Err)
		require.Zero(t, b.Status().Attempt)
	})
	bubble(t, "an open watch clears the error; its end is the next failure", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(errReset), watch(time.Second, open, time.Second, errReset), watch(open, stay))
		b.pass(time.Second)
		require.ErrorIs(t, b.Status().Err, errReset, "there is no answer yet")
		require.Equal(t, 1, b.Status().Attempt)
		b.pass(time.Second)
		require.NoError(t, b.Status().Err)
		require.ErrorIs(t, b.Status().LastError, errReset)
		require.Zero(t, b.Status().Attempt)
		b.pass(time.Second)
		require.ErrorIs(t, b.Status().Err, errReset)
		require.Equal(t, 2, b.Status().Attempt, "the pauses grow")
		b.pass(2 * time.Second)
		require.NoError(t, b.Status().Err)
	})
	bubble(t, "an open WatchList does not clear the error before its end", func(t *testing.T) {
		b := run(t, options{}, watchList(errReset), watchList(open, added(at("a", "1")), time.Second, initialEnd("5"), stay))
		b.pass(time.Second)
		require.ErrorIs(t, b.Status().Err, errReset)
		b.pass(time.Second)
		require.NoError(t, b.Status().Err)
	})
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{}
		require.Equal(t, reflector.Status{Phase: reflector.Idle, Remaining: -1},
			reflector.New[*thing](&fake{t: t}, store, options{}).Status())
	})
	synctest.Test(t, func(t *testing.T) {
		more := int64(7)
		first := pageOf("5", "t", at("a", "1"), at("b", "1"))
		last := first.steps[len(first.steps)-1]
		first.steps[len(first.steps)-1] = withRemaining(last, &more)
		b := run(t, options{}, watchList(errInvalid), first, failedList(at("c", "1"), errInternal), failedList(errInternal), list("9"), watch(stay))
		s := b.Status()
		require.Equal(t, reflector.Waiting, s.Phase)
		require.ErrorIs(t, s.Err, errInternal)
		require.Equal(t, 1, s.Attempt)
		require.Equal(t, time.Now(), s.LastErrorAt)
		require.Equal(t, time.Now().Add(800*time.Millisecond), s.NextAttempt)
		require.Equal(t, int64(7), s.Remaining)
		require.Equal(t, 3, s.Objects)
		b.pass(time.Second)
		require.Equal(t, 2, b.Status().Attempt)
		require.Equal(t, int64(-1), b.Status().Remaining)
		b.pass(time.Minute)
		s = b.Status()
		require.Equal(t, reflector.Watching, s.Phase)
		require.NoError(t, s.Err)
		require.ErrorIs(t, s.LastError, errInternal)
		require.Equal(t, reflector.Counters{WatchLists: 1, Pages: 4, Watches: 1, Lists: 1}, s.Counters)
		require.Zero(t, s.Remaining)
	})
}
