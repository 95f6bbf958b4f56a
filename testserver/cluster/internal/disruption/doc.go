// Package disruption keeps the status of PodDisruptionBudgets: how many pods are healthy, how many must be, and how
// many may be evicted. It corresponds to the disruption controller of kube-controller-manager, and works with any API
// server. The eviction of a pod reads and writes the same status; see testserver/internal/writer.
//
// # Example
//
//	err := disruption.New(client, disruption.Options{}).Run(ctx) // blocks until ctx ends
//
// # Promises
//
//  1. The status of each budget follows its pods: those that are ready and not being deleted or evicted are healthy.
//  2. A percentage, and maxUnavailable, refer to the replicas that the owners of the pods request.
//  3. An eviction that does not lead to a deletion within two minutes is forgotten.
//  4. If the owners do not tell their replicas, nothing may be evicted, and the condition DisruptionAllowed says why.
//
// # Concurrency
//
// Run has the goroutines of one controller and two informers. They end with its context.
package disruption
