package reflector

import "time"

// Request describes a request that has ended. Options.OnRequest gets it, for metrics and traces.
type Request struct {
	// Verb is "watchlist" for a watch that starts with the current state, "list" for a page of a list, "watch", or
	// "probe" for a list of which only the version is used.
	Verb string
	// Outcome is "done" for a request without an error. Otherwise it is the class of Err, on which the next request
	// depends: "expired", "too large", "unreachable", "busy", "rejected", "deadline", "backwards", "rolled back",
	// "unconfirmed", "missed", "no watchlist" or "broken".
	Outcome string
	// Complete reports whether the request completed a list, so that the store got a whole state.
	Complete bool
	// Items is the number of objects on a page. Events is the number of events and bookmarks with a new version, after
	// the state was complete.
	Items, Events int
	// Took is how long the request lasted. Wait is the pause before the next request, without jitter.
	Took, Wait time.Duration
	// Err is the error of the request, or nil.
	Err error
}

var verbNames = [...]string{watchList: "watchlist", page: "list", watch: "watch", probe: "probe"}

var outcomeNames = [...]string{
	done: "done", expired: "expired", tooLarge: "too large", unreachable: "unreachable", busy: "busy", rejected: "rejected",
	deadline: "deadline", backwards: "backwards", rolledBack: "rolled back",
	unconfirmed: "unconfirmed", missed: "missed", noWatchList: "no watchlist", broken: "broken",
}

// newRequest describes the result of a request.
func newRequest(do verb, res result, err error, wait time.Duration) Request {
	return Request{
		Verb: verbNames[do], Outcome: outcomeNames[res.outcome], Complete: res.synced && do != watch,
		Items: res.items, Events: res.events, Took: res.lasted, Wait: wait, Err: err,
	}
}
