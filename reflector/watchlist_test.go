package reflector_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

const firstWatchList = "0s watchlist rv= NotOlderThan"

func TestWatchList(t *testing.T) {
	bubble(t, "the bookmark completes it, and the same request continues as a watch", func(t *testing.T) {
		b := run(t, options{}, watchList(
			added(at("a", "3")), added(at("b", "5")), time.Second,
			ask(func(b *bench) {
				require.Empty(t, b.store.log(), "the store gets nothing before the end")
				require.Equal(t, reflector.WatchList, b.Status().Phase)
				require.Equal(t, 2, b.Status().Objects)
				require.Empty(t, b.Status().ResourceVersion, "initial objects come in the order of their keys")
			}),
			initialEnd("5"), time.Second, modified(at("a", "6")), deleted(at("b", "7")), bookmark("9"), stay,
		))
		b.pass(3 * time.Second)
		b.expectRequests(firstWatchList)
		b.expectStore("replace [a@3 b@5] at 5", "put a@6 at 6", "delete b@7 at 7", "bookmark 9")
		require.Equal(t, reflector.Watching, b.Status().Phase)
		require.Equal(t, "9", b.Status().ResourceVersion)
		require.Equal(t, 1, b.Status().Counters.Lists)
	})
	bubble(t, "changes before the end are part of the list", func(t *testing.T) {
		b := run(t, options{}, watchList(
			added(at("a", "3")), added(at("b", "5")), added(at("c", "2")), added(at("d", "1")),
			modified(at("a", "6")), deleted(at("b", "7")), added(at("e", "8")), modified(at("e", "9")), deleted(at("d", "10")), added(at("d", "11").as("new")),
			initialEnd("12"), stay,
		))
		b.expectStore("replace [a@6 c@2 d@11 e@9] at 12")
	})
	bubble(t, "a bookmark without the annotation is not the end", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "3")), bookmark("5"), time.Second, stay))
		b.pass(2 * time.Second)
		b.expectStore()
	})
	bubble(t, "an empty collection", func(t *testing.T) {
		b := run(t, options{}, watchList(initialEnd("5"), stay))
		b.expectStore("replace [] at 5")
	})
	bubble(t, "the server refuses it: pages", func(t *testing.T) {
		for _, refusal := range []error{errInvalid, errForbid} {
			b := run(t, options{}, watchList(refusal), list("5", at("a", "1")), watch(stay))
			b.expectRequests(firstWatchList, "0s list rv=0 limit=500", "0s watch rv=5")
			require.ErrorIs(t, b.Status().LastError, refusal)
			b.stop()
		}
	})
	bubble(t, "ErrNoWatchList: pages, and no failure", func(t *testing.T) {
		cannot := fmt.Errorf("fake: %w", api.ErrNoWatchList)
		o := options{
			Hooks: reflector.Hooks{
				OnError: func(err error) { require.NoError(t, err) },
				OnRequest: func(r reflector.Request) {
					if r.Verb == "watchlist" {
						require.Equal(t, "no watchlist", r.Outcome)
						require.Equal(t, cannot, r.Err)
					}
				},
			},
		}
		b := run(t, o, watchList(cannot), list("5", at("a", "1")), watch(stay))
		b.expectRequests(firstWatchList, "0s list rv=0 limit=500", "0s watch rv=5")
		b.expectStore("replace [a@1] at 5")
		require.NoError(t, b.Status().LastError)
		require.Zero(t, b.Status().Attempt)
	})
	bubble(t, "ErrNoWatchList of another request: a failure", func(t *testing.T) {
		var outcomes []string
		o := options{Hooks: reflector.Hooks{OnRequest: func(r reflector.Request) { outcomes = append(outcomes, r.Verb+" "+r.Outcome) }}}
		b := run(t, o, watchList(errInvalid), failedList(api.ErrNoWatchList), list("5"), watch(api.ErrNoWatchList), watch(stay))
		b.pass(time.Minute)
		b.expectRequests(firstWatchList, "0s list rv=0 limit=500", "800ms list rv=0 limit=500", "800ms watch rv=5", "2.4s watch rv=5")
		require.Equal(t, []string{"watchlist rejected", "list broken", "list done", "watch broken", "probe done"}, outcomes)
		require.ErrorIs(t, b.Status().LastError, api.ErrNoWatchList)
	})
	bubble(t, "ErrNoWatchList of a WatchList after its end: a failure", func(t *testing.T) {
		b := run(t, options{}, watchList(initialEnd("5"), api.ErrNoWatchList), watch(stay))
		require.ErrorIs(t, b.Status().LastError, api.ErrNoWatchList)
		b.pass(time.Second)
		b.expectRequests(firstWatchList, "800ms watch rv=5")
	})
	bubble(t, "ErrNoWatchList does not clear an earlier error", func(t *testing.T) {
		b := run(t, options{}, watchList(errReset), watchList(api.ErrNoWatchList), list("5", time.Second), watch(stay))
		b.pass(time.Second)
		require.Equal(t, errReset, b.Status().Err)
		b.pass(time.Second)
		require.NoError(t, b.Status().Err)
	})
	bubble(t, "Options.NoWatchList", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(stay))
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5")
	})
	bubble(t, "an outage: again, with backoff, and never pages", func(t *testing.T) {
		b := run(t, options{}, watchList(errTooMany(0)), watchList(errRefused), watchList(errTooMany(5)), watchList(errTooMany(0)), watchList(initialEnd("5"), stay))
		b.pass(time.Minute)
		b.expectRequests(firstWatchList, "800ms watchlist rv= NotOlderThan", "2.4s watchlist rv= NotOlderThan", "7.4s watchlist rv= NotOlderThan", "13.8s watchlist rv= NotOlderThan")
	})
	bubble(t, "broken before its end three times: then pages, and the store gets nothing of it", func(t *testing.T) {
		b := run(t, options{},
			watchList(added(at("x", "1"))), watchList(added(at("y", "1")), errReset), watchList(added(at("z", "1")), errInternal),
			list("5", at("a", "1")), watch(stay))
		b.pass(time.Minute)
		b.expectRequests(firstWatchList, "800ms watchlist rv= NotOlderThan", "2.4s watchlist rv= NotOlderThan", "5.6s list rv=0 limit=500", "5.6s watch rv=5")
		b.expectStore("replace [a@1] at 5")
	})
	bubble(t, "closed without an error before its end: ErrEndedEarly", func(t *testing.T) {
		var errs []error
		b := run(t, options{Hooks: reflector.Hooks{OnError: func(err error) { errs = append(errs, err) }}}, watchList(added(at("x", "1"))), watchList(stay))
		require.Equal(t, []error{reflector.ErrEndedEarly}, errs)
		require.Equal(t, 1, b.Status().Attempt)
	})
	bubble(t, "closed after its end: a watch from the version reached", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), initialEnd("5"), added(at("b", "6")), time.Minute), watch(stay))
		b.pass(2 * time.Minute)
		b.expectRequests(firstWatchList, "1m0s watch rv=6")
	})
	bubble(t, "expired after its end: a new list", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), initialEnd("5"), time.Minute, errExpired), watchList(initialEnd("9"), stay))
		b.pass(2 * time.Minute)
		b.expectRequests(firstWatchList, "1m0s watchlist rv=5 NotOlderThan")
		b.expectStore("replace [a@1] at 5", "replace [] at 9")
	})
	for name, refusal := range map[string]error{"expired": errExpired, "too large": errTooLarge()} {
		bubble(t, name+": a consistent read at once, then with backoff", func(t *testing.T) {
			b := run(t, options{},
				watchList(initialEnd("5"), time.Second, errExpired),
				watchList(refusal), watchList(refusal), watchList(initialEnd("9"), stay))
			b.pass(time.Minute)
			b.expectRequests(firstWatchList, "1s watchlist rv=5 NotOlderThan", "1s watchlist rv= NotOlderThan", "2.6s watchlist rv= NotOlderThan")
		})
	}
}

// A WatchList without an end must not last forever; client-go waits for its bookmark without a limit.
func TestWatchListDeadlines(t *testing.T) {
	bubble(t, "thirty seconds without an event", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), 29*time.Second, added(at("b", "1")), stay), list("5", at("a", "1")), watch(stay))
		b.pass(58 * time.Second)
		require.Len(t, b.lw.asked().requests, 1)
		b.pass(time.Second)
		b.expectRequests(firstWatchList, "59s list rv=0 limit=500", "59s watch rv=5")
		b.expectStore("replace [a@1] at 5")
		require.ErrorIs(t, b.Status().LastError, reflector.ErrStalled)
	})
	bubble(t, "a long list with steady progress has no deadline", func(t *testing.T) {
		var steps []any
		for version := range 20 {
			steps = append(steps, added(at("a"+strconv.Itoa(version), strconv.Itoa(version+1))), 20*time.Second)
		}
		b := run(t, options{Tuning: reflector.Tuning{MinWatchTimeout: time.Hour}}, watchList(append(steps, initialEnd("99"), stay)...))
		b.pass(7 * time.Minute)
		b.expectRequests(firstWatchList)
		require.Equal(t, 20, b.Status().Objects)
	})
	bubble(t, "skipped objects are progress", func(t *testing.T) {
		const pause = 20 * time.Second
		b := run(t, options{}, watchList(
			pause, added(at("", "1")), pause, bad(apiwatch.Added, at("", "1")), pause, bad(apiwatch.Added, at("a", "1")), pause, initialEnd("5"), stay))
		b.pass(5 * pause)
		b.expectRequests(firstWatchList)
		b.expectStore("replace [] at 5")
	})
	bubble(t, "after the first change, additions of known objects are progress", func(t *testing.T) {
		const pause = 15 * time.Second
		b := run(t, options{}, watchList(added(at("a", "1")), modified(at("a", "2")), pause, added(at("a", "3")), pause, added(at("a", "3")), pause,
			initialEnd("5"), stay))
		b.pass(4 * pause)
		b.expectRequests(firstWatchList)
		b.expectStore("replace [a@3] at 5")
	})
	bubble(t, "silence from the beginning", func(t *testing.T) {
		b := run(t, options{}, watchList(stay), list("5"), watch(stay))
		b.pass(31 * time.Second)
		b.expectRequests(firstWatchList, "30s list rv=0 limit=500", "30s watch rv=5")
	})
	// A server that ignores sendInitialEvents sends the current objects and then changes, but no end.
	for name, first := range map[string]any{
		"change": modified(at("a", "2")), "bookmark": bookmark("2"), "undecodable change": bad(apiwatch.Modified, at("a", "2")),
	} {
		bubble(t, "a minute after the first "+name, func(t *testing.T) {
			steps := []any{added(at("a", "1")), 20 * time.Second, added(at("b", "1")), 20 * time.Second, first}
			for version := range 20 {
				steps = append(steps, 10*time.Second, modified(at("b", string(rune('3'+version)))))
			}
			b := run(t, options{}, watchList(steps...), list("99", at("b", "98")), watch(stay))
			b.pass(101 * time.Second)
			b.expectRequests(firstWatchList, "1m40s list rv=0 limit=500", "1m40s watch rv=99")
			b.expectStore("replace [b@98] at 99")
		})
	}
	bubble(t, "the first list after ten minutes is a WatchList again", func(t *testing.T) {
		b := run(t, options{},
			watchList(stay), list("5"), watch(5*time.Minute, bookmark("6"), errExpired), list("7"),
			watch(4*time.Minute, bookmark("8")), watch(time.Minute, errExpired), watchList(initialEnd("9"), stay))
		b.pass(11 * time.Minute)
		b.expectRequests(firstWatchList, "30s list rv=0 limit=500", "30s watch rv=5", "5m30s list rv=6 NotOlderThan", "5m30s watch rv=7",
			"9m30s watch rv=8", "10m30s watchlist rv=8 NotOlderThan")
	})
	bubble(t, "a complete list has no deadline", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), bookmark("2"), initialEnd("5"), 4*time.Minute, added(at("b", "6")), stay))
		b.pass(5 * time.Minute)
		b.expectRequests(firstWatchList)
		b.expectStore("replace [a@1] at 5", "put b@6 at 6")
	})
}

// A relist keeps the pointers of unchanged objects, in a WatchList and in pages, except with NoListReuse.
func TestKnownIsReused(t *testing.T) {
	for _, noReuse := range []bool{false, true} {
		for _, paged := range []bool{false, true} {
			bubble(t, fmt.Sprintf("paged=%t noReuse=%t", paged, noReuse), func(t *testing.T) {
				var before *thing
				remember := ask(func(b *bench) { before = b.known("a") })
				script := script{
					watchList(added(at("a", "1")), added(at("b", "1")), initialEnd("5"), time.Second, remember, errExpired),
					watchList(added(at("a", "1")), added(at("b", "2")), initialEnd("9"), stay),
				}
				if paged {
					script = []answer{
						list("5", at("a", "1"), at("b", "1")), watch(time.Second, remember, errExpired),
						list("9", at("a", "1"), at("b", "2")), watch(stay),
					}
				}
				b := run(t, options{Tuning: reflector.Tuning{NoWatchList: paged, NoListReuse: noReuse}}, script...)
				b.pass(2 * time.Second)
				require.NotNil(t, before)
				require.Equal(t, !noReuse, before == b.known("a"))
				require.Equal(t, "2", b.known("b").version)
			})
		}
	}
}
