// Package reflector keeps a store equal to a collection on a server: it lists once, and then watches.
//
// # Place in the pipeline
//
// Between a ListerWatcher, which makes one request when it is told to, and the DeltaFIFO, which it fills. It decides what
// to ask for next and when, and whether to believe the answer; it decodes nothing and caches nothing.
//
// It is a state machine. What is asked for is a state (state.go), how it went is an outcome (outcome.go), and next leads
// from one to the other: a pure function, so its table can be read, and tested, row by row. Around it stands a thin loop
// (reflector.go) with two ways to perform a request: a page of a list (list.go) and a stream (watch.go).
//
// # Guarantees
//
//  1. For every state and every ending of a request the table says what comes next and after how long (TestNext,
//     TestNextTableIsComplete).
//  2. Whatever a server does, it is not asked without a pause: where nothing succeeds pauses grow from 0.8 to 30 seconds
//     and up to as much again by jitter, and at least to what Retry-After asks for, of which two minutes count; they start
//     anew after two good minutes (TestFailuresSlowDown, TestRequestsAreBounded, TestFailingWatchesSlowDown,
//     TestBackoffSequence, TestNextHonoursRetryAfter, TestRetryAfterIsBounded, TestBackoffStartsAnewAfterTwoGoodMinutes).
//  3. Nothing of a list reaches the store before its end, and nothing of one that failed ever (TestPages,
//     TestExpiredLists, TestStreamingList).
//  4. A streaming list that does not come to its end is given up for one in pages: after 30 seconds without an event, or
//     60 after the first one that is no initial object. Streaming is tried again after ten minutes
//     (TestStreamingListDeadlines). No request waits for ever: a page is given up after 90 silent seconds, and a watch
//     half a minute after its time (TestPages, TestRewatch).
//  5. A watch is resumed from the version reached. Only a 410, a contradiction, three watches in a row that ended
//     without bringing anything, and a server without versions lead to a list; a server that cannot be reached or says
//     429 or 503 never does (TestRewatch, TestServerWithoutVersions). The first 410 after an outage leads to a list within
//     five seconds, at random, and not after another backoff (TestExpiredAfterAnOutage). After an outage, and after a
//     minute of watches that brought neither an event nor a bookmark, a probe asks for the server's version: a
//     consistent list of one name, of which only the version is used. If the server went back, a list follows and is
//     believed (TestProbe). A probe that fails does not keep the watch waiting for long (TestFailedProbe).
//  6. Versions are monotonic. Within a stream an event that is not newer than what was seen of its object is dropped and
//     counted, and still advances the version; an event of an unseen object, a bookmark or a list from before the version
//     reached leads to a consistent list at once (TestMonotonicVersions, TestContradictions). A server that went back is
//     believed the second time it says so, and then nothing that is known stands in for what it says
//     (TestServerWentBack). Versions that are not decimals are compared for equality only (TestOpaqueVersions). After a
//     list of version "0" additions advance the version of the store, but no watch is resumed from it
//     (TestAdditionsAfterVersionZero).
//  7. An object that cannot be decoded or transformed costs only itself: the version advances and its last good state
//     stays, unless that is of another UID (TestUndecodable, TestTransformContained). Fail ends Run instead (TestFail).
//     An object that cannot belong to the collection (no name, a slash or bytes that are not UTF-8 in its name, another
//     namespace than the ListerWatcher's) is counted and named, and does not reach the store. If its key is not known,
//     neither is whose state it would have been: an event changes nothing, not even the version, and a list deletes
//     nothing (TestScope, TestMalformedObjectsAreNotStored, TestAListWithoutAKeyDeletesNothing,
//     TestMalformedObjectsAreReported).
//  8. Transform is called once for each state that is stored, and once for the last state that a deletion brings
//     (TestTransformOnce, TestTransformOfDeletions).
//  9. A list costs what changed: what is known keeps its pointer (TestKnownIsReused), and a relist without a change
//     allocates one pointer an object (TestRelistOfUnchangedObjects). Reuse in lists and the dropping of repeated events are
//     switched apart (TestReuseAndDedupAreSwitchedApart). Both end, with a line in the log and in Status, when a source
//     changes an object without changing its version; no update is lost (TestUnversionedChanges).
//  10. Run returns at once when its context ends, wherever it is, and leaves no request behind (TestCancelAnywhere,
//     TestContextsEnd).
//  11. Every error that a request ended with is told, and Status says why there is no list yet (TestOnError,
//     TestOnRequest, TestStatus). A failure is overcome as soon as the server has accepted the next watch (TestStatus). It
//     says, too, when nothing was missing (TestCaughtUpAt).
//  12. Through all of this the store ends up equal to the server, and every key has a legal history (TestSimulation).
//
// # Concurrency
//
// Run starts no goroutine: the ListerWatcher, the store, Transform and the hooks are all called on the
// goroutine that called Run, and one that blocks holds up the rest. Status and Undecodable may be called from anywhere,
// also from those callbacks. The time-outs of a request are timers that end its context. Two mutexes guard what Status
// and Undecodable read; no callback is called under either.
//
// # Differences from client-go
//
// A watch that could not be opened, was reset, or ended within a second is opened again; client-go lists (its rows 21, 23
// and 27). A streaming list has deadlines; client-go waits for its bookmark for ever. Every pause ends with the context.
// Transforms run once. A paged list sends NotOlderThan with its version, so that a server does not take it for an exact
// one. A page that was met with 429 is asked for again, not the whole list. A clean end of a watch that lasted less than
// a second is followed by the next one after that second. Relists are compared by UID and version, and objects whose
// states are known are neither decoded nor passed on.
//
// What no client can see it does not see either: events that a server leaves out of a stream which it continues, and a
// server that went back and has counted up past the version of its clients before a probe. A ListerWatcher that ignores
// the field selector and the limit of a probe hands out the whole collection, which is dropped.
//
// # Example
//
// See the package example.
package reflector
