// Package expectations keeps a reconciler from acting on a cache that does not show yet what the reconciler did itself.
//
// # Place in the pipeline
//
// Beside a controller. A reconcile that creates or deletes says so before it asks the server; the handlers of the informer
// observe what comes; and the next reconcile of that key acts only when all of it was seen. SlowStart makes many objects
// without flooding a server that refuses the first.
//
// # Guarantees
//
//  1. A key is satisfied when nothing was expected of it, or as many creations and exactly the deletions that were expected
//     were observed, or the expectation is older than its time-out (TestRules, TestExpectationsExpire).
//  2. A deletion that is seen twice counts once, and one that nobody expected counts for nothing (TestDeletionsCountByUID).
//  3. Expect replaces what was expected before (TestRules). What is satisfied takes no memory (TestNothingIsKept).
//  4. Whatever order creations, deletions, failures and observations come in, a key is satisfied exactly when a model that
//     counts them says so (TestModel).
//  5. SlowStart tries 1, 2, 4, ... at a time, each batch at once, and no batch after one in which something failed
//     (TestSlowStart). Nothing that it started is left when it returns, or panics because a call did
//     (TestSlowStartPassesPanicsOn).
//
// # Concurrency
//
// Expectations may be used from any goroutine; no method blocks but for a lock that is held for a moment. SlowStart blocks
// until everything that it started has returned.
//
// # Differences from client-go
//
// client-go has nothing of the kind; these are the ControllerExpectations and UIDTrackingControllerExpectations of
// kube-controller-manager in one type, for any comparable key. Deletions are always told apart by UID. To expect several
// things of one key is to give each a key of its own and to ask for all of them: SatisfiedAll. An expectation that was
// fulfilled is forgotten, where theirs stays.
//
// With coalescing handlers expectations never come true: an addition and a deletion that cancel each other are not
// delivered.
//
// # Example
//
// See Example and ExampleSlowStart.
package expectations
