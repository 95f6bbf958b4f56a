// Package load makes the pods that everything in bench is measured with.
//
// # Place in the pipeline
//
// Before its source: package server sends what load encodes. It has nothing of leat or of its peers in it.
//
// # Guarantees
//
//  1. The same seed makes the same pods, byte for byte (TestTheFixedSetIsFixed).
//  2. A pod has 5 to 9 KB of JSON, 25 to 40 % of which are managedFields (TestSizesAndShares).
//  3. Pods vary as those of a cluster do: replicas share labels, images and variables with each other and with no other
//     workload, and no name, UID or address with anybody (TestPodsVary).
//  4. What Append writes is what apimachinery would have written: in JSON and protobuf, whole and metadata alone
//     (TestEncodingsAgree).
//  5. Appending a pod costs a copy and no allocation, so that what is measured is the client (TestAppendDoesNotAllocate).
//
// # Concurrency
//
// A Set is immutable and may be used by any number of goroutines.
//
// # Differences from client-go
//
// client-go has nothing like it.
package load
