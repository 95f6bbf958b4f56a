package listerwatchertest

import (
	"testing"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver"
)

// Options describe the server of the suite and the limits of the subject.
type Options struct {
	// Server holds the options of the servers; a case may change more.
	Server testserver.Options
	// SkipUndecodable skips the cases with objects that cannot be decoded into T. Use it if T can hold every object, or
	// if the transport cannot carry such objects.
	SkipUndecodable bool
}

// Run runs the suite: everything that the reflector expects of a ListerWatcher.
func Run[T api.Object](t *testing.T, o Options, make Make[T]) {
	cases := []struct {
		name   string
		change func(*testserver.Options)
		test   func(*bench[T])
	}{
		{"list/empty", nil, listEmpty[T]},
		{"list/whole", nil, listWhole[T]},
		{"list/pages", nil, listPages[T]},
		{"list/expired page", nil, listExpiredPage[T]},
		{"list/selectors", nil, listSelectors[T]},
		{"list/versions", nil, listVersions[T]},
		{"list/many", nil, listMany[T]},
		{"list/each fails", nil, listEachFails[T]},
		{"list/known", nil, listKnown[T]},
		{"list/cancelled", nil, listCancelled[T]},
		{"list/errors", nil, listErrors[T]},
		{"list/refused", nil, refused[T]},
		{"watch/from a version", nil, watchFromVersion[T]},
		{"watch/history", nil, watchHistory[T]},
		{"watch/open", func(o *testserver.Options) { o.BookmarkInterval = -1 }, watchOpen[T]},
		{"watch/wait", func(o *testserver.Options) { o.BookmarkInterval = -1 }, watchWait[T]},
		{"watch/from nothing", nil, watchFromNothing[T]},
		{"watch/selector", nil, watchSelector[T]},
		{"watch/bookmarks", nil, watchBookmarks[T]},
		{"watch/WatchList", nil, watchWatchList[T]},
		{"watch/known", nil, watchKnown[T]},
		{"watch/time-out", nil, watchTimeout[T]},
		{"watch/long silence", func(o *testserver.Options) { o.BookmarkInterval = -1 }, watchLongSilence[T]},
		{"watch/break closes", nil, watchBreakCloses[T]},
		{"watch/cancelled", nil, watchCancelled[T]},
		{"watch/cancelled while it opens", nil, watchCancelledWhileItOpens[T]},
		{"watch/cancelled before", nil, watchCancelledBefore[T]},
		{"watch/expired event", nil, watchExpired[T]},
		{"watch/expired status", func(o *testserver.Options) { o.ExpiredStatus = true }, watchExpired[T]},
		{"watch/error event", nil, watchErrorEvent[T]},
		{"watch/errors", nil, watchErrors[T]},
		{"watch/disconnected", nil, watchDisconnected[T]},
		{"watch/cut", nil, watchCut[T]},
		{"watch/outage", nil, watchOutage[T]},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := o.Server
			if c.change != nil {
				c.change(&server)
			}
			run(t, server, make, c.test)
		})
	}
	if o.SkipUndecodable {
		return
	}
	t.Run("list/undecodable", func(t *testing.T) { run(t, o.Server, make, listUndecodable[T]) })
	t.Run("watch/undecodable", func(t *testing.T) { run(t, o.Server, make, watchUndecodable[T]) })
}
