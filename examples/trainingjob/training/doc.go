// Package training is the controller of TrainingJobs: it creates their Pods and Services and writes their status.
//
// Package plan decides what to do. Read reconciler.go first, then carryout.go for creations and deletions, watch.go for
// sources and expectations, and counts.go for the metrics.
//
// # Example
//
// New returns the controller, which a manager runs:
//
//	c, err := training.New(training.Options{
//		Client: client, Jobs: jobs, Pods: pods, Services: services, Recorder: events,
//	})
//
// # Promises
//
//  1. A late cache does not cause a second creation or deletion. Each type of replica has its own expectations of Pods
//     and of Services, which end after a time limit.
//  2. The expectations of a job end with it. A new job of the same name has none of them.
//  3. A reconcile sees what the last one wrote. A job that another client has changed meanwhile is neither overwritten
//     nor deleted.
//  4. Counts and Events follow a written status, so the next process does not repeat them.
//  5. An object that the server rejects as invalid fails the job. Other failures are retried.
//  6. All objects with a job's label end with the job or its suspension, including those of no known replica.
//  7. A panic ends one attempt, not the program.
//
// # Concurrency
//
// Reconcile runs on the controller's workers, for different jobs at the same time. It creates Pods in batches of 1, 2,
// 4 and so on, and blocks until the last request is answered.
//
// # Differences from client-go
//
// It does what the TFJob controller of kubeflow's training-operator does. There, the expectations of several types are
// satisfied when those of any type are, defaults are set on objects of the cache, and jobs are counted again at each
// start of the operator.
package training
