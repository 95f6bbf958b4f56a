// Package workload is what the controllers of this example have in common: the resources, what they look at in a Pod, and
// how they file what belongs to whom.
//
// # Place in the pipeline
//
// Between the informers and the reconcilers of rollout, replicas and kubelet.
//
// # Guarantees
//
//  1. A Pod is available when it has been ready for minReadySeconds, to the moment, and not before (TestAvailable).
//  2. Every object is filed once: under its controller, or with the orphans of its namespace (TestKeeperOf).
//  3. A selector that is empty, or cannot be read, selects nothing (TestSelects).
//
// # Concurrency
//
// Everything is pure.
//
// # Differences from client-go
//
// Pod declares the twentieth part of a Pod that these controllers need, and so the caches hold no more than that.
package workload
