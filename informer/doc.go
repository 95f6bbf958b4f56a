// Package informer keeps a cache equal to a collection on a server and tells handlers of every change.
//
// # Place in the pipeline
//
// The composition root of everything below a controller:
//
//	ListerWatcher → Reflector → DeltaFIFO → handleDeltas → Indexer
//	                                             └───────→ processListeners → handlers
//
// Read informer.go for how the stages are put together, handledeltas.go for what happens to a batch, listener.go and
// backlog.go for how a handler is told of it, and factory.go for how informers are shared.
//
// # Guarantees
//
//  1. Legal history. For each handler and UID there is one Add, then Updates, then at most one Delete; nothing comes
//     without an Add, and a changed UID under one key is a Delete and an Add (TestSimulation).
//  2. Exactly once. A handler that joins while changes arrive sees each of them either in what is replayed to it or as a
//     change, never both or neither (TestLateHandlerSeesEachChangeOnce, TestJoinInTheMiddleOfABatch,
//     TestJoinBetweenBatches).
//  3. Cache first. When a handler is told of a change, the cache holds that state or a newer one
//     (TestCacheIsAheadOfHandlers). Synced is closed when the cache holds the first list, and before any handler is told
//     of it (TestSyncedIsClosedBetweenTheCacheAndTheHandlers).
//  4. Nobody stops anybody. A slow, stuck or panicking handler delays neither the cache nor another handler, and the
//     log says so (TestStuckHandlerDelaysNobody, TestHandlerPanicIsContained, TestSlowHandlerIsWarnedOf). A call that
//     takes longer than Options.StuckAfter is reported in the log and in Status, and its return in the log
//     (TestStuckHandlerIsReported, TestStuckInTheMiddleOfABacklog, TestSlowCallsAreNotStuck).
//  5. Bounded on demand. What a coalescing handler has still to be told is bounded by the number of objects
//     (TestCoalescingBacklogIsBounded).
//  6. Clean end. Run returns when nothing it started is left, and no handler is called afterwards
//     (TestRunEndsInEveryState, TestNoCallAfterRun).
//  7. Whole relists. A reader sees a relist entirely or not at all, whatever a server does in between; nothing that was
//     cached is lost because a server misbehaves (TestCacheSurvivesMisbehavingServer).
//  8. Exact versions. ResourceVersion is that of what the cache holds, and WaitFor returns when that has reached a
//     version (TestWaitFor).
//  9. Whoever has gone keeps nothing. A handler that was removed, however far behind, and a share that was released hold
//     no object (TestRemovedHandlerKeepsNothing, TestAShareForgetsItsFormerHandlers).
//  10. Resyncs keep their period, however busy the informer is, and tell nobody twice (TestResyncKeepsItsPeriodHoweverBusy,
//     TestTheFirstListIsNotToldTwice).
//  11. A factory says when its informers are synced, and why not, and waits for none that is gone
//     (TestFactoryIsSyncedWithItsInformers, TestFactoryDoesNotWaitForWhoIsGone).
//  12. The age of the cache is known: Status says when the server was heard of last (TestHeardAt), and batches can be
//     observed, from any moment on, as they reach the cache (TestObserveBatches).
//
// # Coalescing
//
// A handler that is registered with HandlerOptions.Coalesce is told, of each object, at most one Delete of what it was
// told of last and one Add or Update of the newest state:
//
//	Add      + Update = Add of the new          Delete + Add          = both
//	Add      + Delete = nothing                 Delete + Add + Delete = the first Delete
//	Update   + Update = Update, first to last   Update + Delete       = Delete
//
// It is unfit for handlers that count, such as expectations.
//
// # Concurrency
//
// One goroutine receives (the reflector's), one applies (Run's own), and one delivers for each handler; a ticker runs if
// a handler asked for resyncs. Handlers are called one notification at a time, each in its own order, without a lock:
// they may block, add handlers, wait for a version, and remove themselves or others (TestHandlersMayDoAnything); one that
// ends its goroutine is removed. The informer's one lock orders batches, joins and resyncs; no user code runs under it but
// index functions, which must not call the informer. The hooks of Options may (TestCallbacksMayCallBack), but nothing
// goes on until they return, so they must not wait for it.
// Cache, Snapshot and index look-ups never block; Status, AddEventHandler and Remove wait for a batch that is being
// applied, and only WaitFor for anything else. Every method may be called before, during and after Run.
//
// # Differences from client-go
//
// Handlers are typed, and a deletion always has an object. A handler can be removed, and an informer stopped and shared
// by reference count. A panic in a handler is counted and logged, and the handler still becomes synced. A relist
// notifies only of what changed: not, as in client-go, handlers with a resync of everything. A changed UID is a Delete
// and an Add, where client-go makes it an Update. The version is that of the cache, not of what was last received.
// Deliveries come in the order of each object's first change in a batch, not of every change across objects.
//
// # Example
//
// See Example, ExampleAddIndex, ExampleFiltered and ExampleFactory.
package informer
