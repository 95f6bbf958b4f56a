// Package training is the controller of TrainingJobs: it makes their Pods and Services, and says how they fare.
//
// # Place in the pipeline
//
// At its end. Read reconciler.go first, then carryout.go for what is made and deleted, watch.go for what a job is reconciled
// for and how expectations are settled, and counts.go for what is counted. What is to be done is decided by package plan.
//
// # Guarantees
//
//  1. Nothing is made or deleted twice because a cache is late: each type of replica is waited for, its Pods and its Services
//     (TestLateCachesMakeNothingTwice, TestTypesAreExpectedTogether, TestLateDeletionsAreWaitedFor). What never comes is
//     not waited for for ever (TestWhatNeverComesIsNotExpectedForEver).
//  2. What is expected of a job is forgotten with it, and a job of the same name expects nothing of it
//     (TestExpectationsGoWithTheirJob).
//  3. What a reconcile has written of a job the next one sees (TestStatusIsWrittenOnce), and what somebody else has changed
//     meanwhile is not written over, nor deleted (TestAnotherVersionIsNotWrittenOver, TestALongerLifeIsSeen).
//  4. What is counted and told is what was written, and not again by whoever comes after (TestCountsAreOfWhatWasWritten).
//  5. What the server refuses for good ends the job; what it refuses at the moment is tried again (TestRefusals, TestFailedDeletions).
//  6. Whatever belongs to a job ends with it or with its suspension, also what is no replica that there is
//     (TestUnclearReplicasGo).
//  7. A panic costs an attempt (TestPanicsAreContained).
//
// # Concurrency
//
// Reconcile runs on the controller's workers, for different jobs at once. It makes few Pods at a time at first, then twice as
// many each time; it blocks until the last of those requests is answered.
//
// # Differences from client-go
//
// It does what the controller of TFJobs of kubeflow's training-operator does. There, expectations of several types are
// satisfied when any of them is, defaults are set on the objects of the cache, and jobs are counted again whenever the
// operator starts.
package training
