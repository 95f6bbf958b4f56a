// Package deltafifo is the queue between the goroutine that receives changes and the goroutine that applies them. It
// collects the changes of each object, decides what each change is, and hands all of them over at once.
//
//	Reflector ──Put, Delete, Replace──▶ DeltaFIFO ──batch──▶ handleDeltas of the informer
//
// The reflector is the only producer of changes, and the informer is the only consumer. The queue keeps a map of all
// objects, which includes the changes that the consumer has not taken yet. It compares a list with this map, and does
// not need the consumer's cache. A producer that merges several streams uses a [Txn] instead, whose changes are in one
// batch. Package scopes does this.
//
// # Example
//
//	queue := deltafifo.New[*corev1.Pod]()
//	queue.Replace(pods, "100") // a list and its resource version
//	queue.Put(pod, "101")      // an event of a watch
//	err := queue.Pop(ctx, func(b deltafifo.Batch[*corev1.Pod]) { apply(b) }) // blocks until there is a change
//
// See Example and ExampleDeltaFIFO_Pop.
//
// # Promises
//
//  1. When the queue is empty, a consumer that applied every batch has the same objects as the producer: the same
//     pointers, not copies.
//  2. A batch has all changes since the last Pop: objects in the order of their first change, each with its changes,
//     oldest first.
//  3. The history of a key is legal: an addition comes first, and two deletions never follow each other. An object with
//     a new UID is a deletion of the old object, with an unknown final state, and an addition.
//  4. The queue decides once what a change is: an addition, an update with the old state, or a deletion. The consumer
//     need not look at its own state.
//  5. The cost of a list depends on the number of changes. A known object, as the same pointer, makes no change.
//  6. The version of a batch is exactly the version of the state after it. A bookmark is a batch without changes.
//  7. The batch that completes the first list says so, once.
//  8. The queue holds only objects that are known or in a batch. A huge batch does not make later ones slow.
//
// # Concurrency
//
// One goroutine may produce (Put, Delete, DeleteKey, Bookmark, Replace, Flush, Get, Lookup, KnownLen) and one may
// consume (Pop, then Close). Several goroutines may produce if each of them uses a [Txn]. Resync may be called on any
// goroutine. Pop blocks, at most until its context ends. Close blocks until no batch is being processed. One mutex
// guards the changes. It is not held while a batch is processed, so the producer does not wait for the consumer, and
// the function that processes a batch may use the queue, except Pop, Flush and Close. Two batches are never processed
// at once.
//
// # Differences from client-go
//
// client-go 0.37 keeps an ordered log of events (RealFIFO) and hands out slices of at most 1000 of them. Here, as in
// its older DeltaFIFO, changes are collected per object, and a Pop takes the whole queue. Readers of the informer see
// no difference, because it publishes a whole batch. A list makes additions, updates and deletions; client-go makes
// Replaced deltas, and its informer decides which of them are updates. There is no KnownObjects, no Sync or SyncAll
// delta, no key function that can fail, and no requeue, because processing cannot fail. A tombstone is a flag of a
// deletion.
package deltafifo
