// Package leaderelection has one of several replicas lead: it holds a Lease of coordination.k8s.io, and runs what only the
// leader may do for as long as it holds it.
//
// # Place in the pipeline
//
// Around it. A manager runs the controllers that must not run twice inside Elector.Run; everything else, caches above all,
// runs beside it on every replica.
//
// # Guarantees
//
//  1. Of the replicas that use one lease, at most one leads at a time, as long as no clock runs faster than another by more
//     than LeaseDuration to RenewDeadline, and what leads ends with its context (TestNeverTwoLeaders,
//     TestSlowAnswersDoNotLengthenTheLease, TestClockRates, TestTheBoundOfClockRatesIsTight). With the defaults that
//     is a factor of 1.5. The clock of a machine that is suspended stands still: no bound holds for it, and only the
//     server can refuse its writes, by their resource versions.
//  2. Clocks are never compared: a lease has run out when this process has seen no change of it for its duration. Wall
//     clocks may be hours apart, and may jump (TestClocksAreNotCompared, TestClockRates).
//  3. A leader that cannot renew for RenewDeadline stops to lead, and so does one that sees another in its place, at once;
//     Run then returns ErrLost, with the lease and the cause, when what leads has returned
//     (TestLostLease, TestTheDeadlineWaitsForNoTick, TestUsurpedLease, TestUsurpedWhileItRenews). Leading is false at that
//     moment even where nobody has had time to notice (TestLeadingAsksTheClock).
//  4. When the context ends, the lease is renewed until what leads has returned, and only then released, so that the next
//     leader never begins before the last has ended; it begins within a retry (TestReleaseAfterTheLastWorker,
//     TestHandOver).
//  5. A leader that dies is followed by another within LeaseDuration and one retry, which is 2.2 times RetryPeriod at most
//     (TestDeadLeaderIsFollowed).
//  6. Cancellation ends Run in every state, at once when it does not lead (TestRunEndsInEveryState).
//  7. What others wrote into the lease (labels, annotations, fields that this package does not know of within its type) stays
//     (TestLeaseIsKept).
//  8. A leader that has not renewed for LeaseDuration and a tolerance is unhealthy, anybody else is healthy
//     (TestLeaderThatDoesNotEndIsUnhealthy).
//
// # Concurrency
//
// Run blocks; it calls lead on a goroutine of its own and returns after it did. Elected, Leader, Leading and Check may be
// called from any goroutine at any time and never block. Options.OnLeader and OnLeading are called on Run's goroutine and
// delay a renewal as long as they take.
//
// # Differences from client-go
//
// The end of the context does not end the lease before the work: client-go stops to renew first. What leads is a function
// that returns, instead of two callbacks. A lease that somebody else holds is lost at once, and not after the renew
// deadline. Leading asks the clock. There is one kind of lock. The lease is released by default: KeepLease is for who does not want that.
// Coordinated leader election (KEP-4355), in which the API server picks the leader, has no part in it.
//
// # Example
//
// See Example.
package leaderelection
