package listerwatchertest

import (
	"testing"

	"github.com/leatproject/leat/api"
	"github.com/leatproject/leat/testserver"
)

// Options say what kind of server the suite runs, and what a subject cannot be asked for.
type Options struct {
	// Server is what the servers are made with; a case may set more.
	Server testserver.Options
	// SkipUndecodable leaves out objects that are no T, for a T that can hold anything and for a transport that cannot
	// carry them.
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
		{"watch/from nothing", nil, watchFromNothing[T]},
		{"watch/selector", nil, watchSelector[T]},
		{"watch/bookmarks", nil, watchBookmarks[T]},
		{"watch/streaming list", nil, watchStreamingList[T]},
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
