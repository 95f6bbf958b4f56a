package reflector_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatproject/leat/reflector"
)

// Every list ends. Without a bound, each case would last forever or fill the memory.
func TestEndlessLists(t *testing.T) {
	options := func(watchLists bool, most int) reflector.Options[*thing] {
		return reflector.Options[*thing]{Tuning: reflector.Tuning{NoWatchList: !watchLists, MaxListObjects: most}}
	}
	bubble(t, "a token that repeats", func(t *testing.T) {
		b := run(t, options(false, 0),
			pageOf("5", "t", at("a", "1")), pageOf("5", "u", at("b", "1")), pageOf("5", "t", at("a", "1")),
			list("5", at("a", "1"), at("b", "1")), watch(stay))
		require.ErrorIs(t, b.Status().LastError, reflector.ErrSamePage)
		b.pass(time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t limit=500", "0s list continue=u limit=500",
			"800ms list rv=0", "800ms watch rv=5")
		b.expectStore("replace [a@1 b@1] at 5")
	})
	for name, items := range map[string][]any{"with new objects": {at("b", "1")}, "without objects": nil} {
		bubble(t, "a token that its own page repeats, "+name, func(t *testing.T) {
			b := run(t, options(false, 0), pageOf("5", "t", at("a", "1")), pageOf("5", "t", items...), list("5"), watch(stay))
			require.ErrorIs(t, b.Status().LastError, reflector.ErrSamePage)
		})
	}
	bubble(t, "a page that repeats, with another token", func(t *testing.T) {
		b := run(t, options(false, 0), pageOf("5", "t", at("a", "1")), pageOf("5", "u", at("a", "1")), list("5"), watch(stay))
		require.ErrorIs(t, b.Status().LastError, reflector.ErrSamePage)
	})
	bubble(t, "the last page may repeat objects", func(t *testing.T) {
		b := run(t, options(false, 0), pageOf("5", "t", at("b", "1"), at("a", "1")), list("5", at("a", "2")), watch(stay))
		require.NoError(t, b.Status().LastError)
		b.expectStore("replace [a@2 b@1] at 5")
	})
	bubble(t, "pages of undecodable objects are progress", func(t *testing.T) {
		b := run(t, options(false, 0), pageOf("5", "t", bad("", at("a", "1"))), pageOf("5", "u", bad("", at("a", "1"))), list("5"), watch(stay))
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t limit=500", "0s list continue=u limit=500", "0s watch rv=5")
		require.NoError(t, b.Status().LastError)
	})
	for name, object := range map[string]func(n int) any{
		"new objects":                   func(n int) any { return at(fmt.Sprint("a", n), "1") },
		"undecodable objects":           func(n int) any { return bad("", at(fmt.Sprint("a", n), "1")) },
		"malformed objects":             func(int) any { return at("", "1") },
		"malformed undecodable objects": func(int) any { return bad("", at("", "1")) },
	} {
		bubble(t, "an answer without an end, of "+name, func(t *testing.T) {
			endlessly := &endless{make: func(n int) []any { return []any{object(n)} }}
			b := run(t, options(false, 3), failedList(endlessly), list("5", at("a", "1"), at("b", "1"), at("c", "1")), watch(stay))
			require.EqualError(t, b.Status().LastError, "reflector: the list does not end: it has more than 3 objects (MaxListObjects)")
			require.Equal(t, 4, endlessly.n)
			b.pass(time.Second)
			b.expectStore("replace [a@1 b@1 c@1] at 5")
		})
	}
	bubble(t, "pages without an end", func(t *testing.T) {
		b := run(t, options(false, 2), pageOf("5", "t", at("a", "1")), pageOf("5", "u", at("b", "1")), pageOf("5", "v", at("c", "1")),
			list("5"), watch(stay))
		require.ErrorIs(t, b.Status().LastError, reflector.ErrEndlessList)
		b.pass(time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t limit=500", "0s list continue=u limit=500",
			"800ms list rv=0", "800ms watch rv=5")
	})
	bubble(t, "an answer that repeats an object", func(t *testing.T) {
		endlessly := &endless{make: func(int) []any { return []any{at("a", "1"), time.Second} }}
		b := run(t, options(false, 0), failedList(endlessly), list("5"), watch(stay))
		b.pass(91 * time.Second)
		require.ErrorIs(t, b.Status().LastError, reflector.ErrStalled)
	})
	bubble(t, "empty pages for an hour", func(t *testing.T) {
		var pages []answer
		for n := range 3600 {
			pages = append(pages, pageOf("5", fmt.Sprint("t", n), time.Second))
		}
		b := run(t, options(false, 0), append(pages, list("5"), watch(stay))...)
		b.pass(time.Hour)
		require.EqualError(t, b.Status().LastError, "reflector: the list does not end: 0 objects came in 1h0m0s")
	})
	bubble(t, "a WatchList that repeats an object", func(t *testing.T) {
		endlessly := &endless{make: func(int) []any { return []any{added(at("a", "1")), time.Second} }}
		b := run(t, options(true, 0), watchList(endlessly), list("5"), watch(stay))
		b.pass(30 * time.Second)
		require.ErrorIs(t, b.Status().LastError, reflector.ErrStalled)
		b.expectRequests("0s watchlist rv= NotOlderThan", "30s list rv=0 limit=500", "30s watch rv=5")
	})
	for name, object := range map[string]func(n int) any{
		"new objects":                   func(n int) any { return added(at(fmt.Sprint("a", n), "1")) },
		"undecodable objects":           func(n int) any { return bad("ADDED", at(fmt.Sprint("a", n), "1")) },
		"malformed objects":             func(int) any { return added(at("", "1")) },
		"malformed undecodable objects": func(int) any { return bad("ADDED", at("", "1")) },
	} {
		bubble(t, "a WatchList without an end, of "+name, func(t *testing.T) {
			endlessly := &endless{make: func(n int) []any { return []any{object(n)} }}
			b := run(t, options(true, 3), watchList(endlessly), list("5"), watch(stay))
			require.ErrorIs(t, b.Status().LastError, reflector.ErrEndlessList)
			require.Equal(t, 4, endlessly.n)
			b.expectRequests("0s watchlist rv= NotOlderThan", "0s list rv=0 limit=500", "0s watch rv=5")
		})
	}
	bubble(t, "a WatchList may take as long as a watch", func(t *testing.T) {
		endlessly := &endless{make: func(n int) []any { return []any{added(at(fmt.Sprint("a", n), "1")), 20 * time.Second} }}
		b := run(t, options(true, 0), watchList(endlessly), list("5"), watch(stay))
		b.pass(5*time.Minute + 30*time.Second)
		require.ErrorIs(t, b.Status().LastError, reflector.ErrStalled)
	})
}

// The record of undecodable objects is bounded.
func TestUndecodableObjectsAreBounded(t *testing.T) {
	bubble(t, "new names without an end", func(t *testing.T) {
		many := &endless{make: func(n int) []any {
			if n < 20_000 {
				return []any{bad("ADDED", at(fmt.Sprint("a", n), fmt.Sprint(6+n)))}
			}
			return []any{bad("MODIFIED", at("a0", "30000")), bad("MODIFIED", at("a0", "30000")), stay}
		}}
		b := run(t, paged(), list("5"), watch(many))
		require.Len(t, b.Undecodable(), 10_000)
		require.Equal(t, 20_001, b.Status().Counters.Undecodable)
		require.Contains(t, undecodable(b), "a0 30000", "a recorded object can change")
	})
}
