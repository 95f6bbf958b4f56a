// Package server answers for an API server that costs next to nothing: lists and watches of pods that are encoded
// already, so that what is measured is the client.
//
// # Place in the pipeline
//
// The source: it sends what package load has encoded to whichever client is measured. It has nothing of leat or of its
// peers in it.
//
// # Guarantees
//
//  1. Lists, whole and in pages, streamed lists and watches, of whole objects and of metadata, in JSON and in protobuf, say
//     what a kube-apiserver would (TestListsAndWatches, TestPages).
//  2. Every client gets the same bytes for the same request, whatever else it claims to understand: nothing is compressed,
//     and drop=metadata.managedFields (KEP-5958, alpha) is not known (TestEverybodyGetsTheSame).
//  3. A watch begins where it was asked to, and misses nothing (TestWatchFromAVersion).
//  4. What was on the wire is reported, so that nobody is measured with another encoding than the one that the row says
//     (TestRequestsAreNoted).
//
// # Concurrency
//
// Run blocks until everything it started is gone. Every other method may be called from any goroutine while Run runs. A
// watch is served on the goroutine of its request, one write and one chunk an event, flushed when nothing more is there to
// send, as kube-apiserver does.
//
// # Differences from client-go
//
// client-go has nothing like it.
package server
