// Package manager runs a program that consists of controllers: it starts what they need before them and ends it after them,
// has them work on one replica at a time, and answers when somebody asks how they fare.
//
// # Place in the pipeline
//
// Around all of it: informers, controllers, recorders and servers are added to a Manager, whose Run is all that main calls.
//
//	start   servers → caches → others → warm-up → elected
//	end     elected and warm-up → others → caches → servers
//
// Read manager.go for what can be asked of a manager, group.go for what the groups are, run.go for the life of all of them
// and registration.go for that of one; checks.go, admin.go and server.go are how it is seen from outside.
//
// # Guarantees
//
//  1. A group starts when the one before is ready: servers listen and caches hold their first lists, those included that
//     came meanwhile; one that is not ready in time ends Run with an error that names it and the cause
//     (TestOrderOfStartAndEnd, TestAddWhileRunning, TestSyncTimeoutNamesTheCause).
//  2. A group ends when what started after it has ended: caches outlive the workers that read them, and the admin server
//     answers until nothing else is left (TestOrderOfStartAndEnd, TestAdminServesToTheEnd).
//  3. The lease is released after the last worker, however long that takes; it is not released at all where a worker
//     outlives the grace period and the process ends (TestHandOverIsWarm, TestTheLeaseOutlivesTheLastWorker). Who does
//     not lead does not begin to while it ends (TestWhoDoesNotLeadWithdrawsAtOnce).
//  4. Controllers fill their queues on every replica, and one that begins to lead has nothing to list; one that cannot keeps
//     nobody else from leading, and the log says why (TestHandOverIsWarm, TestReplicaThatCannotWarmUp,
//     TestWhyAReplicaIsCold).
//  5. When the lease is lost, even while Run waits for the last worker, all are told to end, nobody is waited for, and Run
//     returns the loss, which names the lease and the cause (TestLostLease, TestLeaderThatIsCutOff,
//     TestLeaderThatIsCutOffAtTheEnd, TestElectorsThatAreNotHelpful).
//  6. A failure, a panic included, ends everything in order, and the errors of all are joined, the first one first
//     (TestAFailureEndsEverything, TestErrorsAreJoined). Who has come to an end without one ends nothing, but for what
//     others rest on (TestWhoIsDoneEndsNothing).
//  7. Run returns within the grace period, names what did not end by then, and logs what it failed with later
//     (TestGracePeriod, TestLateErrorsAreLogged, TestAnElectorThatDoesNotEndIsNamed).
//  8. Runnables and checks come and go at any time, names are unique among those that are there (TestAddWhileRunning,
//     TestRemove, TestNames, TestChecksComeAndGo, TestComingAndGoing).
//  9. Cancellation ends Run in every state, and leaves nothing behind (TestRunEndsInEveryState).
//  10. Health checks speak as those of Kubernetes do, withhold reasons unless they are asked to show them, and say which
//     informer is not synced, and why (TestChecksAnswerAsKubernetesDoes, TestReadyz,
//     TestCacheThatSaysWhyItIsLate, TestElectionIsChecked).
//  11. The admin server has limits for those who say nothing, lets requests in flight end and cuts the rest off; it shows
//     neither profiles nor keys unless it is asked to (TestConnectionsThatSayNothing, TestRequestsHaveLimits, TestRequestsInFlight,
//     TestAdminAnswersWhatItIsAskedFor, TestDebugAsksTheControllers, TestSettings).
//
// # Concurrency
//
// Run blocks, and starts a goroutine for each runnable; each is gone when Run has returned, unless a *GraceError names it,
// or nobody was waited for. Add, Remove and everything else may be called from anywhere, at any time, also by what runs, and
// does not block. A runnable's context ends when it is its turn to end, not with the one that Run was called with, whose
// values it has. Checks and handlers are called on the goroutines of requests. No lock is held during a call of the
// user's.
//
// # Differences from client-go
//
// client-go has no manager; these are the differences from controller-runtime. A manager makes neither clients nor caches:
// they are made before and added. Controllers warm up by default. Others end after the elected, not with them, so that a
// recorder writes what the last worker had to say. Runnables and checks can be removed, and added late. The lease outlives
// the grace period if a worker does, so that it is safe to release it, which is the default. A cache has a time-out.
// The options that many controllers share are a value of controller.Options, which main copies; the manager has none to
// give. A runnable that panics ends the manager instead of the process. The end of a server or a cache without an error is a
// failure, too. There is /livez, a check of informers and one that fails during the end. A
// grace period of 0 is the default, and DoNotWait what it is there.
//
// # Example
//
// See Example.
package manager
