package reflector_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/reflector"
)

// paged returns Options for lists in pages.
func paged() options { return options{Tuning: reflector.Tuning{NoWatchList: true}} }

func TestListThenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, paged(),
			list("5", at("a", "3"), at("b", "5")),
			watch(added(at("c", "6")), modified(at("a", "7")), deleted(at("b", "8")), stay),
		)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5")
		b.expectStore("replace [a@3 b@5] at 5", "put c@6 at 6", "put a@7 at 7", "delete b@8 at 8")
		require.Equal(t, reflector.Watching, b.Status().Phase)
		require.Equal(t, "8", b.Status().ResourceVersion)
	})
}

func TestOptionsOfEveryRequest(t *testing.T) {
	for _, o := range []options{
		{Selector: api.Selector{Labels: "l=1", Fields: "f=1"}},
		{Selector: api.Selector{Labels: "l=1", Fields: "f=1"}, Memory: reflector.Memory{KeepManagedFields: true}, Tuning: reflector.Tuning{NoListReuse: true}},
		{Selector: api.Selector{Labels: "l=1", Fields: "f=1"}, Memory: reflector.Memory{NoSharedParts: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := run(t, o,
				watchList(errInvalid), pageOf("5", "t", at("a", "1")), list("5"), watch(errExpired), list("6", at("a", "1")), watch(stay))
			b.pass(time.Minute)
			require.Len(t, b.lw.asked().options, 6)
			for n, got := range b.lw.asked().options {
				require.Equal(t, "l=1", got.LabelSelector)
				require.Equal(t, "f=1", got.FieldSelector)
				require.Equal(t, !o.KeepManagedFields, got.DropManagedFields)
				require.Equal(t, !o.NoSharedParts, got.ShareParts)
				require.Equal(t, n == 4 && !o.NoListReuse, got.Known != nil, "only a list uses Known, and only if the store has objects")
				require.NotNil(t, got.OnUndecodable)
			}
		})
	}
}

// A watch requests a random timeout between the minimum and twice that, and bookmarks.
func TestWatchTimeout(t *testing.T) {
	for _, c := range []struct {
		minimum time.Duration
		random  float64
		want    int64
	}{
		{0, 0, 300}, {0, 0.5, 450}, {0, 0.9999, 599}, {time.Hour, 0.5, 5400}, {time.Millisecond, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := options{Tuning: reflector.Tuning{MinWatchTimeout: c.minimum, Rand: func() float64 { return c.random }}}
			b := run(t, o, watchList(initialEnd("5"), bookmark("6")), watch(stay))
			b.pass(3 * time.Second)
			require.Len(t, b.lw.asked().options, 2)
			for _, got := range b.lw.asked().options {
				require.Equal(t, c.want, *got.TimeoutSeconds)
				require.True(t, got.AllowWatchBookmarks)
			}
		})
	}
}

func TestPages(t *testing.T) {
	bubble(t, "nothing reaches the store before the last page", func(t *testing.T) {
		b := run(t, paged(),
			pageOf("5", "t1", at("a", "1")),
			pageOf("5", "t2", at("b", "2"), time.Second),
			list("5", ask(func(b *bench) { require.Empty(t, b.store.log()) }), at("c", "3")),
			watch(stay),
		)
		b.pass(2 * time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t1 limit=500", "1s list continue=t2 limit=500", "1s watch rv=5")
		b.expectStore("replace [a@1 b@2 c@3] at 5")
	})
	bubble(t, "every list uses Options.PageSize", func(t *testing.T) {
		o := paged()
		o.PageSize = 2
		b := run(t, o,
			pageOf("5", "t", at("a", "1"), at("b", "1")), list("5", at("c", "1")), watch(errExpired),
			pageOf("9", "u", at("a", "1")), list("9"), watch(stay),
		)
		b.expectRequests("0s list rv=0 limit=2", "0s list continue=t limit=2", "0s watch rv=5",
			"0s list rv=5 limit=2 NotOlderThan", "0s list continue=u limit=2", "0s watch rv=9")
	})
	bubble(t, "a relist is not paged, so the watch cache answers it", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "1")), watch(errExpired), list("9", at("a", "1")), watch(stay))
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "0s list rv=5 NotOlderThan", "0s watch rv=9")
	})
	bubble(t, "a server that pages a list of any version has no watch cache: all its lists are paged", func(t *testing.T) {
		b := run(t, paged(),
			pageOf("5", "t", at("a", "1")), list("5"), watch(errExpired),
			pageOf("9", "u", at("a", "1")), list("9"), watch(errExpired),
			list("10"), watch(stay),
		)
		b.pass(time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t limit=500", "0s watch rv=5",
			"0s list rv=5 limit=500 NotOlderThan", "0s list continue=u limit=500", "0s watch rv=9",
			"800ms list rv=9 limit=500 NotOlderThan", "800ms watch rv=10")
	})
	bubble(t, "a consistent read in pages does not show whether the server has a watch cache", func(t *testing.T) {
		b := run(t, paged(),
			list("5", at("a", "1")), watch(errExpired), failedList(errExpired),
			pageOf("9", "t", at("a", "1")), list("9"), watch(errExpired), list("12", at("a", "1")), watch(stay),
		)
		b.pass(time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5", "0s list rv=5 NotOlderThan",
			"0s list rv= limit=500", "0s list continue=t limit=500", "0s watch rv=9", "800ms list rv=9 NotOlderThan", "800ms watch rv=12")
	})
	bubble(t, "pages that are newer than the first: the watch begins at the version of the first", func(t *testing.T) {
		b := run(t, paged(), pageOf("5", "t", at("a", "4")), list("9", at("c", "8")), watch(deleted(at("a", "7")), added(at("c", "8")), stay))
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t limit=500", "0s watch rv=5")
		b.expectStore("replace [a@4 c@8] at 5", "delete a@7 at 7", "bookmark 8")
	})
	bubble(t, "an empty page does not end the list", func(t *testing.T) {
		b := run(t, paged(), pageOf("5", "t"), pageOf("5", "u"), list("5", at("a", "1")), watch(stay))
		b.pass(2 * time.Second)
		b.expectRequests("0s list rv=0 limit=500", "800ms list continue=t limit=500", "1.6s list continue=u limit=500", "1.6s watch rv=5")
		require.Empty(t, b.Status().Counters.Expired)
	})
	bubble(t, "an outage between pages: the same page again, and no object twice", func(t *testing.T) {
		b := run(t, paged(),
			pageOf("5", "t", at("a", "1")), failedList(at("b", "1"), at("left", "1"), errTooMany(3)), failedList(errRefused),
			list("5", at("b", "1"), at("c", "1")), watch(stay),
		)
		b.pass(10 * time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t limit=500", "3s list continue=t limit=500",
			"4.6s list continue=t limit=500", "4.6s watch rv=5")
		b.expectStore("replace [a@1 b@1 c@1] at 5")
		require.Equal(t, 3, b.Status().Objects)
	})
	bubble(t, "a page breaks: the list begins again, without the old objects", func(t *testing.T) {
		b := run(t, paged(),
			pageOf("5", "t", at("gone", "1")), failedList(at("gone-too", "1"), errReset), list("6", at("a", "1")), watch(stay))
		b.pass(time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t limit=500", "800ms list rv=0 limit=500", "800ms watch rv=6")
		b.expectStore("replace [a@1] at 6")
	})
	bubble(t, "the same token again: the list in one page", func(t *testing.T) {
		b := run(t, paged(), pageOf("5", "t", at("a", "1")), pageOf("5", "t", at("a", "1")), list("5", at("a", "1")), watch(stay))
		require.ErrorIs(t, b.Status().LastError, reflector.ErrSamePage)
		b.pass(time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t limit=500", "800ms list rv=0", "800ms watch rv=5")
		b.expectStore("replace [a@1] at 5")
	})
	bubble(t, "a page that breaks after its metadata has failed with its own error", func(t *testing.T) {
		b := run(t, paged(), pageOf("5", "t", at("a", "1")), failedList(cutOff{metav1.ListMeta{Continue: "t"}, errReset}))
		require.Equal(t, errReset, b.Status().LastError)
	})
	bubble(t, "skipped objects are progress", func(t *testing.T) {
		const pause = 80 * time.Second
		b := run(t, paged(), list("5", pause, bad("", at("b", "1")), pause, at("", "1"), pause, bad("", at("", "1")), pause), watch(stay))
		b.pass(4 * pause)
		require.NoError(t, b.Status().LastError)
		b.expectStore("replace [] at 5")
	})
	bubble(t, "a page that is complete is used, even after its deadline", func(t *testing.T) {
		b := run(t, paged(), list("5", at("a", "1"), afterDeadline(2*time.Minute)), watch(stay))
		b.pass(2 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "2m0s watch rv=5")
	})
	bubble(t, "a page without progress fails", func(t *testing.T) {
		b := run(t, paged(),
			failedList(at("a", "1"), 80*time.Second, at("b", "1"), 80*time.Second, at("c", "1"), stay), list("5"), watch(stay))
		b.pass(249 * time.Second)
		require.NoError(t, b.Status().LastError)
		b.pass(2 * time.Second)
		require.ErrorIs(t, b.Status().LastError, reflector.ErrStalled)
		b.expectRequests("0s list rv=0 limit=500", "4m10.8s list rv=0 limit=500", "4m10.8s watch rv=5")
	})
}

// TestExpiredLists checks the requests after a version or a continue token has expired.
func TestExpiredLists(t *testing.T) {
	bubble(t, "between pages: the staged objects are dropped, and a list in one page follows", func(t *testing.T) {
		b := run(t, paged(),
			pageOf("5", "t1", at("gone", "1")), pageOf("5", "t2", at("gone-too", "1")), failedList(errExpired),
			list("9", at("a", "8")), watch(stay),
		)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t1 limit=500", "0s list continue=t2 limit=500",
			"0s list rv=", "0s watch rv=9")
		b.expectStore("replace [a@8] at 9")
		require.Equal(t, 1, b.Status().Counters.Expired)
	})
	bubble(t, "the next list is paged again", func(t *testing.T) {
		b := run(t, paged(),
			pageOf("5", "t1", at("a", "1")), failedList(errExpired), list("9", at("a", "1")), watch(errExpired),
			list("10", at("a", "1")), watch(stay),
		)
		b.pass(time.Second)
		b.expectRequests("0s list rv=0 limit=500", "0s list continue=t1 limit=500", "0s list rv=", "0s watch rv=9",
			"0s list rv=9 limit=500 NotOlderThan", "0s watch rv=10")
	})
	for name, refused := range map[string]error{
		"expired": errExpired, "too large": errTooLarge(), "too large, as old servers say it": errTooLargeLegacy(),
	} {
		bubble(t, name+": a consistent read at once; the next list requests the version reached", func(t *testing.T) {
			b := run(t, paged(),
				list("5", at("a", "1")), watch(errExpired),
				failedList(refused), list("9", at("a", "1")), watch(errExpired),
				list("12", at("a", "1")), watch(stay),
			)
			b.pass(time.Second)
			b.expectRequests("0s list rv=0 limit=500", "0s watch rv=5",
				"0s list rv=5 NotOlderThan", "0s list rv= limit=500", "0s watch rv=9",
				"800ms list rv=9 NotOlderThan", "800ms watch rv=12")
		})
		bubble(t, name+": a server that refuses consistent reads gets requests with backoff", func(t *testing.T) {
			b := run(t, paged(), failedList(refused), failedList(refused), failedList(refused), list("9"), watch(stay))
			b.pass(10 * time.Second)
			b.expectRequests("0s list rv=0 limit=500", "0s list rv= limit=500", "800ms list rv= limit=500",
				"2.4s list rv= limit=500", "2.4s watch rv=9")
		})
	}
}

// Failed lists change nothing in the store, also if the client loses a permission later.
func TestFailedListsKeepTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := script{list("5", at("a", "1")), watch(errForbid), watch(errForbid), watch(errForbid)}
		for range 20 {
			script = append(script, failedList(errForbid))
		}
		script = append(script, list("9", at("b", "8")), watch(stay))
		b := run(t, paged(), script...)
		b.pass(8 * time.Minute)
		b.expectStore("replace [a@1] at 5")
		require.Equal(t, reflector.Waiting, b.Status().Phase)
		require.ErrorIs(t, b.Status().Err, errForbid)
		require.Equal(t, "a@1", b.known("a").String())
		b.pass(3 * time.Minute)
		b.expectStore("replace [a@1] at 5", "replace [b@8] at 9")
		require.NoError(t, b.Status().Err)
		require.Zero(t, b.Status().Attempt)
	})
}

// Without versions, no watch can continue another. Each end of a watch leads to a list, which finds the deletions.
func TestServerWithoutVersions(t *testing.T) {
	for _, version := range []string{"", "0"} {
		bubble(t, "version "+version, func(t *testing.T) {
			unversioned := func(name string) *thing { return at(name, "") }
			b := run(t, paged(),
				list(version, unversioned("a"), unversioned("b")),
				watch(added(unversioned("a")), added(unversioned("b")), modified(unversioned("a")), time.Minute),
				list(version, unversioned("a")), watch(errReset), list(version, unversioned("a")), watch(stay),
			)
			b.pass(2 * time.Minute)
			b.expectRequests("0s list rv=0 limit=500", "0s watch rv="+version, "1m0s list rv=0 limit=500",
				"1m0s watch rv="+version, "1m0.8s list rv=0 limit=500", "1m0.8s watch rv="+version)
			require.Nil(t, b.known("b"))
			require.NotNil(t, b.known("a"))
		})
	}
}

// A watch without a version begins with the current objects, in the order of their keys.
func TestWatchFromNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, paged(), list("", at("a", "4")), watch(
			added(at("a", "4")), added(at("b", "9")), added(at("c", "3")), modified(at("c", "10")), added(at("b", "9")), added(at("deleted", "2")), stay,
		), list("", at("b", "9"), at("c", "10")), watch(stay))
		b.expectStore("replace [a@4] at ", "bookmark 4", "put b@9 at 9", "put c@3 at 9", "put c@10 at 10", "replace [b@9 c@10] at ")
		require.Equal(t, 2, b.Status().Counters.Stale)
		require.Equal(t, 1, b.Status().Counters.Backwards, "from the first change on, versions grow")
	})
}

// Additions after a list of version "0" advance the version of the store, so that WaitFor returns. They may be initial
// objects in the order of their keys, so no watch continues from their versions: a list follows.
func TestAdditionsAfterVersionZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, paged(), list("0", at("a", "4")), watch(added(at("b", "9")), added(at("c", "3")), time.Minute),
			list("0", at("a", "4"), at("b", "9"), at("c", "3")), watch(stay))
		b.expectStore("replace [a@4] at 0", "put b@9 at 9", "put c@3 at 9")
		require.Equal(t, "9", b.Status().ResourceVersion)
		b.pass(2 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=0", "1m0s list rv=0 limit=500", "1m0s watch rv=0")
	})
}

// Versions that are not decimal have no order. They are passed on, and watches continue from them.
func TestOpaqueVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, paged(),
			list("zz", at("a", "kk"), at("b", "bb")),
			watch(modified(at("a", "aa")), modified(at("a", "aa")), added(at("c", "b")), deleted(at("b", "bb")), bookmark("c"), time.Minute),
			watch(errExpired), list("a", at("a", "aa")), watch(stay),
		)
		b.pass(2 * time.Minute)
		b.expectRequests("0s list rv=0 limit=500", "0s watch rv=zz", "1m0s watch rv=c", "1m0s list rv=c NotOlderThan", "1m0s watch rv=a")
		b.expectStore("replace [a@kk b@bb] at zz", "put a@aa at aa", "put c@b at b", "delete b@bb at bb", "bookmark c", "replace [a@aa] at a")
		require.Equal(t, 1, b.Status().Counters.Stale, "only an equal version is stale")
	})
}
