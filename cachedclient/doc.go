// Package client is what a reconciler reads and writes with: reads from an informer's cache, writes to the server, and
// neither a state from before its own writes.
//
// # Place in the pipeline
//
// At its end, in the hands of a reconciler, it closes the circle:
//
//	informer → cache ──Get, List──▶ reconciler ──Create, Update, Patch, Delete──▶ apiclient → API server
//	             │                      ▲  │
//	             └───────▶ Gate ────────┘  └──▶ overlay of the cache
//
// Read partial.go for reads of one object, list.go for those of many and cachesource.go for where the cache comes from,
// write.go and typed.go for writes, change.go for what is read, changed and written. gate.go and unseen.go hold a
// reconcile back until the cache has caught up with the last one, cachetarget.go says when it has, and overlay.go does
// without waiting.
//
// # Reading one's own writes
//
// A cache shows what was written a moment later. There are two ways to live with that, which may be combined:
//
//   - A Gate before a controller's reconciler: the next reconcile of a key begins when the caches show what the last ones
//     wrote, each write of which has a version. Within a reconcile, reads are of the cache. It is what most want.
//   - Options.Overlay: reads show what this client wrote at once, whoever asks. It is for who reads what it has just
//     written; what another process wrote it cannot know, and a client of another type has an overlay of its own.
//
// # Guarantees
//
//  1. Get and List return copies, and Peek and ListOptions.Shared what the cache holds (TestGetCopiesAndPeekDoesNot,
//     TestListCopiesUnlessShared).
//  2. What is not there is apimachinery's NotFound (TestWhatIsNotThereIsNotFound). What nobody caches, or not that
//     namespace of, is a *NotCachedError; nothing is cached because somebody reads (TestNothingIsCachedByReading,
//     TestNamespacesThatAreNotHeld) unless Options.Informers says so (TestReadsMayStartAnInformer). What is not
//     cached yet is waited for, as long as the context lasts, and the error says what the list failed with (TestReadsWaitForTheFirstList).
//  3. A list is of one moment, with its version, in the order of namespaces and names, and so are its pages, whatever
//     happens meanwhile (TestListSelects, TestPagesAreOfOneMoment).
//  4. Behind a Gate, no reconcile reads an object in a state from before what a reconcile of the same key wrote to it
//     (TestModel, TestGateWaitsForEveryKindOfWrite, TestDeletionsOfSeveralOfOneName, TestDeletionsOfAllOfAPart,
//     TestGateLetsAControllerGoOn, TestWritesBeforeTheFirstRead, TestGateOfAnInformerBeforeItsFirstList), unless the
//     time-out is over, which is counted and logged (TestGateGoesOnAfterTheTimeout).
//  5. A Gate waits for nothing that will not come: what selectors exclude, what was refused, what another history has made
//     undone, what a stopped informer lacks (TestGateDoesNotWaitForWhatWillNotCome, TestGateWaitsForWhatLeavesTheSelection,
//     TestGateAndAServerThatWentBack, TestGateOfAStoppedInformer, TestGateOfAnInformerThatStopsLater). It forgets what has been seen (TestGateForgetsWhatWasSeen).
//  6. An overlay shows the newer one of what was written and what is cached, and nothing that was deleted; no reader goes
//     back (TestModel, TestOverlayTable, TestOverlayShowsWhatWasWritten, TestOverlayAfterDeletions). It is bounded in number
//     and in time (TestOverlayIsBounded, TestOverlayAges), which are the limits of that.
//  7. CreateOrUpdate, CreateOrPatch, Change and ChangeStatus send nothing if nothing changes, read anew what the server
//     knows better, and never write back what a Transform has cut (TestCreateOrUpdateSendsWhatIsNeeded,
//     TestCreateOrUpdateOverAStaleCache, TestChangesBeginWithWholeObjects). A patch that replaces a list does not undo what
//     others have done to it (TestPatchesOfListsAreCarefulOnes).
//
// # Concurrency
//
// Everything is safe for concurrent use. Reads of a filled cache take no lock, unless an overlay has something to show;
// writes block for the server. A Gate has one lock, under which it looks at caches and calls nobody. Nothing here
// starts a goroutine: caches that are waited for are listened to by a handler of the informer, the first time that
// anybody waits, and the time-out is a timer.
//
// # Differences from client-go
//
// client-go's readers are listers, and its writers sets of typed clients; these are the differences from
// controller-runtime. A client is of one type and made once, from an informer: there is no scheme, no informer that
// starts because somebody reads, unless it is allowed, and no method that a partial type could be written with. Lists
// have an order, a version and pages, of which a List is the continue token: it keeps what is left of its snapshot, and
// nothing does when it is gone. Fields are selected by indexes, which are values and have types. Reads may show one's
// own writes. CreateOrUpdate knows what to do about a conflict.
//
// A write of which the outcome is unknown, because its answer was lost, is not noted by anybody: there is no version
// that could be waited for. Versions without an order are waited for until they are met, and an overlay ignores them
// (TestGateAndVersionsWithoutOrder). What an overlay shows did not go through the informer's Transform.
//
// # Example
//
// See Example, ExampleGate, ExampleBy and ExampleTyped_CreateOrUpdate.
package cachedclient
