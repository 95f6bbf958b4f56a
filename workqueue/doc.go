// Package workqueue is a queue of keys for workers: it hands each key to one worker at a time, and never more often
// than it must.
//
// # Place in the pipeline
//
// Between the handlers of an informer, which add the keys of what has changed, and the workers of a controller, which
// reconcile them. It knows nothing of Kubernetes, and imports nothing of ours.
//
// # Guarantees
//
//  1. A key is never in the hands of two workers at once, and what was added last is seen by a hand-out after it
//     (TestNeverTwoWorkersOnOneKeyAndNoneLost).
//  2. An add of a key that is ready changes nothing but its causes and its priority (TestAddsCoalesceWhileQueued); an
//     add of a key that is being processed makes it ready at its Done, exactly once (TestAddWhileProcessingRunsOnceMore).
//  3. A delay ends exactly when it should, whether or not anybody waits (TestDelaysAreExact,
//     TestDelayedKeyBecomesReadyByItself). Of several the earliest counts (TestEarliestDelayWins), so that steady adds
//     put nothing off (TestSteadyAddsDoNotPostpone). Add makes a delayed key ready (TestAddTakesTheWaitingAway) and
//     Cancel takes it back (TestCancel).
//  4. The more urgent key goes first (TestUrgentKeysGoFirst), within a priority the one that came to it first, and no
//     key waits longer than for Options.Ageing × (1 + the keys that were ready before it) hand-outs, whatever is added
//     meanwhile (TestLowestClassIsServedUnderFullLoad, TestAgeingBoundHoldsForEveryKey). The price is that an urgent key
//     may wait for one turn of a less urgent one (TestBacklogDoesNotHoldUpUrgentKeys).
//  5. After ShutDown nothing is taken in, and what is ready is still handed out (TestShutDownHandsOutWhatIsReady);
//     a drain ends when nothing is queued and nothing is processed, and not before (TestDrain, TestDrainWithWorkers).
//     Keys that are delayed are dropped by both.
//  6. No wake-up is lost, not even with a Get that is cancelled as it is woken (TestWakeUpIsNotLostWithItsGet).
//  7. A key carries the first Options.MaxCauses causes of the adds that made it ready, and the number of the others
//     (TestCausesTravelWithKeys).
//  8. What has left the queue is not kept alive by it (TestWhatLeftIsNotRetained, TestCausesAreNotRetained). What a burst
//     needed is used again while bursts come and go (TestRoomIsUsedAgain, TestBacklogThatComesAndGoesDoesNotAllocate),
//     and given back when none has for half a minute (TestBurstIsGivenBack, TestKeysSurviveATrim); limiters give it back
//     at once (TestBurstOfFailuresIsGivenBack). The timer, and by it the queue, is kept only while a key waits or
//     something is to be given back (TestTimerStopsWithTheLastDelay).
//  9. Add, Get and Done of a queue in use do not allocate, causes included (TestAddGetDoneDoNotAllocate,
//     TestSteadyBacklogDoesNotAllocate).
//  10. The clock is read for delays and metrics only (TestClockIsReadOnlyForDelaysAndMetrics), and every ten seconds
//     while a queue has more room than it needs.
//
// All of them together are checked against a plain model, operation by operation (TestModel, FuzzModel).
//
// # Concurrency
//
// Everything may be called from any goroutine. Only Get and ShutDownWithDrain block, until their context ends at the
// latest. A queue owns no goroutine: a timer makes delayed keys ready, and needs one for that moment only
// (TestNoGoroutine). There is one lock. A RateLimiter and the functions of Metrics are called without it, and may use the
// queue (TestLimiterMayUseTheQueue, TestHooksMayUseTheQueue).
//
// Keys that are added by one goroutine at one priority are handed out in the order in which they were added; those that
// are due at the same time, in the order in which they were delayed (TestEqualDelaysKeepTheirOrder). Which of several
// waiting Gets receives a key is not said.
//
// # Differences from client-go
//
// One type takes the place of Interface, DelayingInterface and RateLimitingInterface, and of the priority queue of
// controller-runtime.
//
//   - Of a key there is one pending hand-out, not one among the ready and another among the delayed: an add that is due
//     earlier takes the place of a later one. A handler that adds a key now and again after a delay wants the delay asked
//     for by the work itself.
//   - Get returns ErrShutDown only when nothing that is processed will run again, so a dispatcher that ends there has
//     missed nothing (TestGetWaitsForWhatWillRunAgain). A drain takes a context and waits for what is queued, too.
//   - Done of a key that is not being processed panics.
//   - Priorities age. The priority queue of controller-runtime starves what is less urgent, and drops what is queued when
//     it is shut down.
//   - Gauges are asked for with Stats. There is no goroutine that refreshes them.
//   - There is no pluggable order of the queue, which priorities take the place of, and no ParallelizeUntil, for which
//     see errgroup.Group.SetLimit in golang.org/x/sync.
//
// # Example
//
// See Example for a worker, ExampleQueue_AddWith for priorities and causes, and ExampleQueue_ShutDownWithDrain for an
// orderly end.
package workqueue
