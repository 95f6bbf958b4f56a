// Package workloads runs the Deployment and ReplicaSet controllers of leat's examples in a cluster, so that Deployments
// have pods without kube-controller-manager.
//
// # Example
//
//	err := workloads.New(client, workloads.Options{}).Run(ctx) // blocks until ctx ends
//
// # Promises
//
//  1. The controllers are those of examples/deployment, with their promises.
//  2. Events name deployment-controller and replicaset-controller, as in Kubernetes.
//
// # Concurrency
//
// Run has the goroutines of two controllers, two recorders and three informers. They end with its context.
package workloads
