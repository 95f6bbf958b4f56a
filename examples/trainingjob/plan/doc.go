// Package plan decides what to do for a training job. Its functions are pure: the input is the job with its Pods and
// Services, the output is a plan.
//
// Package training reads the input, calls Decide and carries out the plan. Read decide.go first, which has the life of
// a job. Then read slots.go for the assignment of objects to replicas, outcome.go for success and failure, finish.go
// for the end, and replica.go for the Pods and Services.
//
// # Example
//
// See Example.
//
// # Promises
//
//  1. A replica has one Pod and one Service, which labels identify. Surplus objects are deleted, and ambiguous ones
//     are reported.
//  2. Restart policies, exit codes, disruptions and success policies decide the outcome of a job. Replicas that do not
//     train make no job run or succeed.
//  3. A restart of a Pod is counted once, and the Pod is deleted only after the count was written.
//  4. Deadlines, limits and times to live are exact to the nanosecond.
//  5. At most one of the conditions Running, Restarting and Suspended is true. After the end of the job all are false,
//     and that is final.
//  6. Decide does not change its input.
//  7. With dynamic workers, the TF_CONFIG of a Pod stays correct when the number of workers changes.
//
// # Concurrency
//
// All functions are pure. Call job.SetDefaults before Decide.
//
// # Differences from client-go
//
// Decide does what the reconcilers of kubeflow's training-operator do with a TFJob. There, restarts are counted in
// memory and lost with the process. An active deadline is checked only after an event. Pods are deleted before the end
// of the job is written, so that the next process creates them again.
package plan
