package reflector_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leatproject/leat/reflector"
)

func TestMonotonicVersions(t *testing.T) {
	bubble(t, "an event that is not newer than the known object is dropped and counted", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "3"), at("b", "5")), watch(
			modified(at("a", "8")),
			modified(at("a", "8")), added(at("a", "7")), deleted(at("a", "7")), // twice, late, late
			modified(at("a", "7").as("older incarnation")), deleted(at("a", "4").as("older incarnation")),
			added(at("b", "5")), // from the list
			deleted(at("c", "2")),
			modified(at("b", "9")), stay,
		))
		b.expectStore("replace [a@3 b@5] at 5", "put a@8 at 8", "put b@9 at 9")
		require.Equal(t, 7, b.Status().Counters.Stale)
		require.Equal(t, "9", b.Status().ResourceVersion)
	})
	bubble(t, "a dropped event advances the version, in the store too", func(t *testing.T) {
		b := run(t, paged(), pageOf("5", "t", at("a", "3")), pageOf("7", "", at("b", "7"), at("c", "9")), watch(
			added(at("b", "7")), modified(at("c", "8")), bad(apiwatch.Modified, at("c", "9")), added(at("b", "7")), time.Second,
		), watch(stay))
		b.expectStore("replace [a@3 b@7 c@9] at 5", "bookmark 7", "bookmark 8", "bookmark 9")
		require.Equal(t, "9", b.Status().ResourceVersion)
		require.Equal(t, 4, b.Status().Counters.Stale)
		b.pass(2 * time.Second)
		require.Equal(t, "1s watch rv=9", last(b.lw.asked().requests))
	})
	bubble(t, "an event that is dropped before the end of a WatchList advances only the version of the reflector", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "9")), modified(at("b", "8")), modified(at("a", "9")), bookmark("8"), stay), watchList(stay))
		b.expectStore()
		require.ErrorIs(t, b.Status().LastError, reflector.ErrBackwards, "9 had been reached")
	})
	bubble(t, "a deletion may have the version of the last state, as in old servers", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "3")), watch(deleted(at("a", "3")), stay))
		b.expectStore("replace [a@3] at 5", "delete a@3 at 5")
	})
	bubble(t, "a late event that is newer than the object is applied; the version does not go back", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "3")), watch(bookmark("9"), modified(at("a", "7")), time.Second), watch(stay))
		b.pass(2 * time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "1s watch rv=9")
		b.expectStore("replace [a@3] at 5", "bookmark 9", "put a@7 at 9")
	})
	bubble(t, "a deletion of an unknown object advances the version", func(t *testing.T) {
		b := run(t, paged(), list("5"), watch(deleted(at("unknown", "7")), stay))
		b.expectStore("replace [] at 5", "delete unknown@7 at 7")
		require.Zero(t, b.Status().Counters.Stale)
	})
	bubble(t, "objects without versions are never stale, and the version stays", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "")), watch(modified(at("a", "")), modified(at("a", "")), stay))
		b.expectStore("replace [a@] at 5", "put a@ at 5", "put a@ at 5")
		require.Zero(t, b.Status().Counters.Stale)
	})
	bubble(t, "NoWatchDedup passes on equal versions", func(t *testing.T) {
		o := paged()
		o.NoWatchDedup = true
		b := run(t, o, list("5", at("a", "3")), watch(modified(at("a", "3")), modified(at("a", "2")), stay))
		b.expectStore("replace [a@3] at 5", "put a@3 at 5")
	})
	bubble(t, "events of a WatchList, too", func(t *testing.T) {
		b := run(t, options{}, watchList(
			added(at("a", "3")), added(at("b", "5")), modified(at("a", "8")), added(at("a", "3")), modified(at("a", "8")), deleted(at("b", "4")),
			initialEnd("9"), stay))
		b.expectStore("replace [a@8 b@5] at 9")
		require.Equal(t, 3, b.Status().Counters.Stale)
	})
}

// An event that is older than the version reached, of an unknown object, may be about an object that was deleted since.
// A consistent read follows at once.
func TestContradictions(t *testing.T) {
	for name, contradiction := range map[string]any{
		"older event of an unknown object": added(at("deleted", "6")),
		"older bookmark":                   bookmark("6"),
	} {
		bubble(t, name+" in a watch", func(t *testing.T) {
			b := run(t, paged(), list("5"), watch(added(at("a", "8")), contradiction, stay), list("9", at("a", "8")), watch(stay))
			b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "0s list rv= limit=500", "0s watch rv=9")
			b.expectStore("replace [] at 5", "put a@8 at 8", "replace [a@8] at 9")
			require.ErrorIs(t, b.Status().LastError, reflector.ErrBackwards)
			require.Equal(t, 1, b.Status().Counters.Backwards)
		})
		bubble(t, name+" at once after a list", func(t *testing.T) {
			b := run(t, paged(), list("7"), watch(contradiction, stay), list("9"), watch(stay))
			b.expectRequests("0s list rv=0 limit=500", "0s watch rv=7", "0s list rv= limit=500", "0s watch rv=9")
		})
		bubble(t, name+" in a WatchList after its initial objects", func(t *testing.T) {
			b := run(t, options{}, watchList(added(at("a", "1")), bookmark("8"), contradiction, stay), watchList(added(at("a", "1")), initialEnd("9"), stay))
			b.expectRequests(firstWatchList, firstWatchList)
			b.expectStore("replace [a@1] at 9")
		})
		bubble(t, name+" after a WatchList", func(t *testing.T) {
			b := run(t, options{}, watchList(initialEnd("8"), contradiction, stay), watchList(initialEnd("9"), stay))
			b.expectRequests(firstWatchList, firstWatchList)
		})
	}
	bubble(t, "the end of a WatchList is older than its last change", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), modified(at("a", "8")), initialEnd("7"), stay), watchList(initialEnd("9"), stay))
		b.expectRequests(firstWatchList, firstWatchList)
		b.expectStore("replace [] at 9")
	})
	bubble(t, "a list that is older than the version reached", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "1")), watch(errExpired), list("4"), list("9", at("a", "1")), watch(stay))
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "0s list rv=5 NotOlderThan", "0s list rv= limit=500", "0s watch rv=9")
		b.expectStore("replace [a@1] at 5", "replace [a@1] at 9")
	})
	bubble(t, "a WatchList that is older than the version reached", func(t *testing.T) {
		b := run(t, options{}, watchList(added(at("a", "1")), initialEnd("5"), time.Second, errExpired), watchList(initialEnd("4"), stay),
			watchList(added(at("a", "1")), initialEnd("9"), stay))
		b.pass(2 * time.Second)
		b.expectRequests(firstWatchList, "1s watchlist rv=5 NotOlderThan", "1s watchlist rv= NotOlderThan")
		b.expectStore("replace [a@1] at 5", "replace [a@1] at 9")
	})
	bubble(t, "a server that always contradicts itself gets requests with backoff", func(t *testing.T) {
		s := script{list("1")}
		for version := range 9 {
			v := string(rune('1' + version))
			s = append(s, watch(bookmark("99"+v), bookmark("98"), stay), list("99"+v))
		}
		b := run(t, paged(), s...)
		b.pass(29 * time.Second)
		require.Equal(t, 7, b.Status().Counters.Watches, "at 0, 0, 0.8, 2.4, 5.6, 12 and 24.8 seconds")
	})
}

// After a restore from a backup, the server counts up to the same versions again, with other content.
func TestServerRestoredFromABackup(t *testing.T) {
	restored := at("a", "3")
	restored.content = "as it is now"
	for name, c := range map[string]struct {
		paged    bool
		script   script
		requests []string
	}{
		"an older bookmark": {
			true,
			script{
				list("5", at("a", "3"), at("b", "4")), watch(modified(at("b", "9")), bookmark("3"), stay),
				list("4", restored), list("4", restored), watch(stay),
			},
			[]string{"0s list rv=0 limit=500", "0s watch rv=5", "0s list rv= limit=500", "0s list rv= limit=500", "0s watch rv=4"},
		},
		"an older list": {
			true,
			script{
				list("9", at("a", "3"), at("b", "9")), watch(errExpired),
				list("4", restored), list("4", restored), list("4", restored), watch(stay),
			},
			[]string{
				"0s list rv=0 limit=500", "0s watch rv=9", "0s list rv=9 NotOlderThan", "0s list rv= limit=500",
				"0s list rv= limit=500", "0s watch rv=4",
			},
		},
		"the version is too large": {
			true,
			script{
				list("9", at("a", "3"), at("b", "9")), watch(errExpired),
				failedList(errTooLarge()), list("4", restored), list("4", restored), watch(stay),
			},
			[]string{
				"0s list rv=0 limit=500", "0s watch rv=9", "0s list rv=9 NotOlderThan", "0s list rv= limit=500",
				"0s list rv= limit=500", "0s watch rv=4",
			},
		},
		"WatchList": {
			false,
			script{
				watchList(added(at("a", "3")), added(at("b", "9")), initialEnd("9"), bookmark("3"), stay),
				watchList(added(restored), initialEnd("4"), stay),
				watchList(added(restored), initialEnd("4"), stay),
			},
			[]string{firstWatchList, firstWatchList, firstWatchList},
		},
	} {
		bubble(t, name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			b := run(t, options{Tuning: reflector.Tuning{NoWatchList: c.paged}, Logger: zap.New(core)}, c.script...)
			b.expectRequests(c.requests...)
			require.Equal(t, "overwrite [a@3] at 4", last(b.store.log()))
			require.Equal(t, "as it is now", b.known("a").content, "the same version with another state")
			require.Nil(t, b.known("b"))
			require.Equal(t, "4", b.Status().ResourceVersion)
			require.NoError(t, b.Status().Err)
			entries := logs.FilterMessage("the server was restored from a backup").All()
			require.Len(t, entries, 1)
			require.Equal(t, "4", entries[0].ContextMap()["rv"])
			require.Equal(t, "9", entries[0].ContextMap()["known"])
			require.Equal(t, "things.test", entries[0].ContextMap()["resource"])
		})
	}
	bubble(t, "after the restore, versions only grow again", func(t *testing.T) {
		b := run(t, paged(), list("9", at("a", "9")), watch(bookmark("3"), stay), list("4"), list("4"),
			watch(added(at("a", "5")), modified(at("a", "6")), added(at("deleted", "4")), stay), list("7", at("a", "6")), watch(stay))
		b.pass(time.Minute)
		b.expectStore("replace [a@9] at 9", "replace [] at 4", "put a@5 at 5", "put a@6 at 6", "replace [a@6] at 7")
	})
}

func last(calls []string) string { return calls[len(calls)-1] }

// A list that passes on every object after half a minute of errors may show no restore. Then nothing warns.
func TestAnOutageIsNoRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		o := paged()
		o.Logger = zap.New(core)
		s := script{list("9", at("a", "3")), watch(time.Minute, errReset), watch(stay)}
		for range 5 {
			s = append(s, failedProbe(9*time.Second, errInternal))
		}
		b := run(t, o, append(s, probed("12"), list("12", at("a", "3")), watch(stay))...)
		b.pass(5 * time.Minute)
		requests := b.lw.asked().requests
		require.Contains(t, requests[len(requests)-2], " list rv= limit=500")
		require.Zero(t, logs.FilterMessage("the server was restored from a backup").Len())
	})
}
