// Package plan decides what becomes of a training job: pure functions from what there is to what to do.
//
// # Place in the pipeline
//
// In the middle of a reconcile: training reads, has Decide say what to do, and does it. Read decide.go first, which is
// the life of a job from top to bottom; then slots.go for which object is which replica's, outcome.go for who succeeded
// or failed, finish.go for what happens afterwards, and replica.go for what is made.
//
// # Guarantees
//
//  1. A replica has one Pod and one Service, known by their labels; what is surplus goes, what is told twice is told
//     (TestSlots, TestTheOrderOfPodsDoesNotMatter).
//  2. What becomes of a job is one table: of restart policies, exit codes and success policies (TestOutcome,
//     TestRestartPolicies, TestRetryable), and of Pods that were ended for their node's sake (TestDisruptedPods). A job
//     neither runs nor succeeds because of replicas that do not train (TestRunning, TestEvaluatorsAreNotOfTheCluster).
//  3. A Pod is counted as restarted once, and not deleted before that is written down (TestRestartsAreCountedOnce).
//  4. Deadlines, limits and times to live hold to the nanosecond (TestDeadline, TestFarDeadlines, TestBackoffLimit,
//     TestTimeToLive).
//  5. Of the conditions Running, Restarting and Suspended one at most is true, and none when the job has finished; that
//     is final (TestLifeOfConditions).
//  6. What is given is not changed (TestNothingIsChanged).
//  7. With dynamic workers, what a Pod is told stays true when their number changes (TestDynamicWorkers).
//
// # Concurrency
//
// The functions are pure, but for SetDefaults of package job, which is called before.
//
// # Differences from client-go
//
// Nothing there corresponds to it. It does what the reconcilers of kubeflow's training-operator do with a TFJob. There,
// restarts are counted in memory and forgotten with the process, an active deadline is not looked at unless something
// else happens, and Pods are deleted before it is written that their job has finished, so that whoever takes over in
// between makes them again.
//
// # Example
//
// See Example.
package plan
