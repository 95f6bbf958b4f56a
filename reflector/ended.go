package reflector

import "time"

// Request is a request that has ended: what Options.OnRequest is told, for metrics and traces.
type Request struct {
	// Verb is "stream" for a watch that begins with the whole state, "list" for a page, "watch", and "probe" for a list
	// that asks for the server's version only.
	Verb string
	// Outcome is "done" for a request that ended in good order, and otherwise what the policy made of Err: "expired",
	// "too large", "unreachable", "busy", "rejected", "deadline", "backwards", "rewound", "cannot stream" or "broken".
	Outcome string
	// Complete says that the store was given a whole state in this request.
	Complete bool
	// Items is how many objects a page had; Events how many events and bookmarks brought something new after the state
	// was complete.
	Items, Events int
	// Took is how long the request lasted, Wait the pause before the next one, without its jitter.
	Took, Wait time.Duration
	// Err is what the request ended with.
	Err error
}

var verbNames = map[verb]string{stream: "stream", page: "list", watch: "watch", probe: "probe"}

var endingNames = map[ending]string{
	done: "done", expired: "expired", tooLarge: "too large", unreachable: "unreachable", busy: "busy", rejected: "rejected",
	deadline: "deadline", backwards: "backwards", rewound: "rewound", cannotStream: "cannot stream",
	broken: "broken",
}

// ended describes how a request for do came out.
func ended(do verb, o outcome, err error, wait time.Duration) Request {
	return Request{
		Verb: verbNames[do], Outcome: endingNames[o.ending], Complete: o.synced && do != watch,
		Items: o.items, Events: o.events, Took: o.lasted, Wait: wait, Err: err,
	}
}
