// Package controller runs reconcilers: functions that make the world look as one object says.
//
// # Place in the pipeline
//
// The end of it. Sources turn what informers, channels and functions tell into keys, the queue merges keys that come more
// than once, and workers call the reconciler with one key at a time:
//
//	informer → Source: predicates, then keys → workqueue → worker → Reconcile(ctx, key)
//
// Read reconciler.go and objects.go for what a user writes, controller.go for the life of a controller, informersource.go
// and owns.go for how notifications become keys, worker.go and gate.go for what becomes of a key, and debug.go,
// settings.go and stuck.go for what can be asked, and is told unasked.
//
// # Results
//
// What a reconcile returns decides what becomes of its key (TestResults). Events add it again in any case.
//
//	error                       RequeueAfter   outcome         the key
//	none                        0 or less      success         its failures are forgotten
//	none                        more           requeue_after   its failures are forgotten; again after that time
//	any                         ignored        error           again after its backoff
//	any, MaxRetries used up     ignored        dropped         its failures are forgotten
//	TerminalError               ignored        terminal        its failures are remembered
//	of a context, at the end    ignored        cancelled       dropped with the queue
//
// A key that is added again keeps its priority unless Result.Priority says otherwise.
//
// # Guarantees
//
//  1. No reconcile begins before every source has processed its initial list: its handler, not only its informer
//     (TestNoReconcileBeforeEverySourceIsSynced).
//  2. A key is never reconciled twice at once, however many workers there are and however often it is added
//     (TestKeyIsNeverReconciledTwiceAtOnce); one that is added in mid-reconcile is reconciled again
//     (TestKeyAddedInMidReconcileIsReconciledAgain).
//  3. A failed key is tried again, later each time, until it succeeds (TestBackoffDoublesUntilSuccess).
//  4. A panic costs one attempt, or one answer of a predicate or map function, and nothing else: it is counted and logged
//     with its stack, an attempt is retried, and a predicate counts as passing (TestReconcilePanicIsContained,
//     TestPredicatePanicPasses, TestMapPanicIsContained, TestGatePanicPasses, TestChannelPanicIsContained). Who wants a
//     crash can have it of reconciles (TestCrashOnPanic).
//  5. Nothing is lost with a watch: an object that was deleted while nobody watched reaches its owner, and so does one
//     whose reference changed unseen (TestDeleteInWatchGapTriggersOwner, TestReferenceThatChangedUnseen), or that is gone
//     before anybody was told of it (TestDeleteBeforeDelivery).
//  6. What belonged to an owner of the same name that is gone does not disturb the one that lives, whichever cache learns
//     of it first (TestOwnerRecreated).
//  7. A source that cannot be synced ends Run with an error that names the resource and what its list failed with
//     (TestSyncTimeoutNamesTheCause), and no source that was synced in time (TestSyncTimeoutNamesNoOther); a source that
//     fails later, or whose informer stops, ends Run, too (TestFailedSourceEndsTheController, TestStoppedOwners). Until then
//     the reason can be asked for, at once, and is logged after 10 s (TestWhyASourceIsNotSynced,
//     TestLateSourceSaysWhyItIsNotSynced).
//  8. Clean end. Run returns when no reconcile is in flight and nothing it started is left, in whatever state it was
//     (TestRunEndsInEveryState).
//  9. After Remove of a source none of its functions is called anew, and none of its keys is added (TestRemovedSource,
//     TestSourceRemovesItself, TestSourceRemovesItselfInMidNotification), but by a call in flight, which Done waits for (TestDoneWaitsForTheCallInFlight).
//  10. Initial lists, resyncs and updates of no new version wait for events (TestInitialListAndResyncAreLowPriority,
//     TestUpdatesOfNoNewVersionAreLowPriority, TestOrderOfPriorities), unless their source has a mind of its own
//     (TestPrioritized), and are not starved by them (TestAgeing).
//  11. A reconcile can be told why it runs, and every failure is logged once (TestContextOfReconcile,
//     TestFailureIsLoggedOnce).
//  12. Under churn, faults, panics and restarts, a loop comes to the state that was asked for (TestConvergence,
//     TestConvergenceOverHTTP).
//  13. A key that a Gate holds back costs no worker and no attempt, and loses nothing: neither its causes nor its priority
//     (TestGatedKeyWaits, TestGateCountsNoFailure, TestGateLosesNothing).
//  14. Workers that are held begin no reconcile, while the queue fills (TestWorkersAreHeld); to be released does not take
//     the place of being synced (TestReleasedBeforeSyncedWaitsForTheSources).
//  15. The last reconciles of a key can be asked for, with their causes (TestWhyHasTheLastReconciles, TestDebugOfAKey), and
//     so can what is in work and why a source is not synced (TestDebugOfAController). The memory of it is bounded
//     (TestWhyForgetsTheKeysOfLongAgo, TestHistoryIsBounded).
//  16. Every controller that watches a channel is told of each event that comes meanwhile, whoever of them reads it, and
//     whoever leaves (TestChannelTellsEveryController, TestListenerThatLeavesIsWaitedFor); nothing is stored on the way
//     (TestChannelHoldsUpWhoSends).
//  17. The predicates of a controller are asked about every source of an informer that is not exempted
//     (TestPredicatesOfTheController).
//  18. Build returns all that is wrong at once, and New panics with it (TestBuildFindsEverythingThatIsWrong). Objects gives
//     an ObjectReconciler a copy of its own (TestObjects).
//  19. The number of workers is the controller's own, or that of the kind, or the default, in this order
//     (TestWorkersOfAKind). Settings tells what holds, defaults included (TestSettings, TestDefaultsOfTheQueue).
//  20. A reconcile that does not end is logged, with its key and its causes, and so is what the end of Run waits for
//     (TestStuckReconcileIsSeen, TestEndSaysWhatItWaitsFor).
//
// # Concurrency
//
// Run has one goroutine for each source and each worker, and returns when they are gone. Predicates and map functions are
// called on the delivering goroutine of their informer's handler, one notification at a time and in its order; a slow one
// delays its own source alone. Those of a channel are called by whichever of its controllers reads it, one after the other,
// and delay one another and who sends. The reconciler is called on workers, for different keys at once. No lock is held during a
// call of the user's. Watch, Remove, Add, Stats,
// Settings, NotSynced and Why may be called from anywhere, at any time, and do not block.
//
// # Differences from client-go
//
// client-go has no controllers; these are the differences from controller-runtime. There is one set of types, for any
// comparable key. Predicates are functions, combined by methods of the source so that Go can infer their types, and a
// source can be removed. Owns takes kind and scope from the owners' informer, and compares UIDs. A time-out says what the
// list failed with. Panics are contained in predicates and map functions, too. A failed informer ends the controller,
// which would otherwise go on and hear nothing. There is a bound on retries for those who want one, no Requeue beside an
// error, and a queue that does not starve low priorities. A reconcile can ask for its causes, and people can ask for those
// of reconciles that have been.
//
// A predicate of the whole controller is asked about every source of an informer that does not say otherwise, not only
// about those that a builder made. Channels have no buffers of their own. Names are unique in a manager, not in a process.
// There is no builder, since there is no scheme to look anything up in: see Spec. A Gate takes the place of the sync that
// fails because its cache is behind (KEP-5647).
//
// # Example
//
// See Example, ExampleOwns, ExampleMap, ExampleMap_clusters, ExampleChannel, ExampleSpec, ExampleReconcileID,
// ExampleController_Why and ExampleTerminalError.
package controller
