// Package reflector keeps a store equal to a collection on a server: it lists once and then watches, and lists again if
// a watch cannot continue (a relist). An informer runs a reflector; its store is a DeltaFIFO.
//
//	ListerWatcher ──pages, events──▶ Reflector ──Put, Delete, Replace──▶ DeltaFIFO
//
// The pure function next in state.go is the whole policy: from the state and the result of a request it returns the
// next request and the pause before it. docs/architecture.md has a picture of it. reflector.go has the loop around
// next, list.go fetches pages, and watch.go applies watches and WatchLists.
//
// # Example
//
//	r := reflector.New(listerWatcher, deltaFIFO, reflector.Options[*corev1.Pod]{})
//	err := r.Run(ctx) // blocks until ctx ends
//
// See Example.
//
// # Promises
//
//  1. The store gets a list only when it is complete. A failed list changes nothing.
//  2. A watch that ended continues from the version reached. The reflector lists only after a 410, after a
//     contradiction, after three watches in a row that failed without an event, if the server was restored or may have
//     been, after a change that Options.Check found missing, and if the server has no versions.
//  3. No server gets requests without pauses. If every request fails, the pauses grow from 0.8 to 30 seconds, plus
//     jitter, and last at least as long as Retry-After.
//  4. No request lasts forever. A WatchList without an end is replaced by a list in pages.
//  5. The store never goes back to an older version, unless the server was restored from a backup. The reflector
//     notices that after a connection broke, after an outage and in a silent watch, and then replaces the content of
//     the store.
//  6. An object that cannot be decoded or transformed affects only itself: its last good state stays. An object that
//     cannot belong to the collection is skipped.
//  7. Status shows why there is no list yet, and OnError gets the error of every failed request.
//  8. Run returns at once when its context ends, and leaves no request behind.
//
// # Concurrency
//
// Run calls the ListerWatcher, the store, Transform and the functions of Options on the goroutine that called Run; a
// call that blocks delays everything else. Only probes run beside a watch, on the goroutine of a timer: they call List,
// OnRequest and OnError there, and Run waits for them. Status and Undecodable may be called on any goroutine, also in
// those functions, and do not block. Timers end the context of a request that takes too long. Two mutexes guard the
// data of Status and Undecodable; the reflector holds neither while it calls a function of others.
//
// # Limits
//
// A reflector cannot notice that a server omits events from a watch. After a restore from a backup the server counts up
// again. If it reaches the old version before the reflector gets an answer, the reflector cannot notice the restore:
// that is a few seconds after a connection broke, and at most half a minute in which the server answers only errors. A
// client that gets no connection tries again after a minute at most; a server that was restored and reaches the old
// version in that time, or in a network partition, is not noticed. A server that refuses probes for good (403, 400)
// cannot be checked; Status.ProbeErr shows it. A ListerWatcher that ignores field selector and limit answers a probe
// with the whole collection; the reflector drops it.
//
// # Differences from client-go
//
// A watch that failed to open, was reset, or ended within a second is followed by another watch; client-go lists. A
// WatchList has deadlines; client-go waits for its bookmark forever. Pauses end with the context. The transform is
// called once for each state. A list in pages sets resourceVersionMatch=NotOlderThan; without it, a limit makes the
// server return exactly this version, or 410. After a 429 the same page is requested again, not the whole list. A
// relist compares UIDs and versions; known objects are neither decoded nor passed on.
package reflector
