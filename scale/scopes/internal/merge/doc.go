// Package merge writes the changes of several list and watch streams into one DeltaFIFO. So the queue, the informer and
// the cache need not know that there are several: package scopes is one informer of many streams. The package decides
// which stream's state of an object counts, whether an object has moved or is deleted, and which version each namespace
// has reached.
//
// # Promises
//
//  1. Each transaction leaves the newest state of each object among the streams that have it. The history of each
//     object is legal: streams that come, go or list again add no second addition and lose no deletion, except after a
//     silent removal. An object that moves, or returns to a stream which had lost it, is updated, if the other stream
//     receives it within a second.
//  2. The version of a batch is the oldest version of the streams. No version is ahead of the objects, unless a move
//     takes longer than that.
//
// # Concurrency
//
// Every method of a [Merger] may be called on any goroutine. One goroutine may call the methods of a [Stream], except
// those that its comment names. Each call is one transaction of the queue, and waits while another one is open. A
// [State] never changes.
package merge
