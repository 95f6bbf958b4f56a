// Package deltafifo accumulates changes per object between the goroutine that hears of them and the one that applies
// them.
//
// # Place in the pipeline
//
// Between the reflector, its only producer, and HandleDeltas of the informer, its only consumer. It knows every object
// as it will be once the queue is drained, so a list is compared here, and neither side has to ask the other anything.
//
// # Guarantees
//
//  1. A consumer that carries out the deltas of each batch holds, whenever the queue is drained, exactly what the
//     producer put in: the very pointers (TestModel, FuzzModel).
//  2. A batch is everything there is: objects in the order of their first change, each with its deltas oldest first
//     (TestModel, TestOrder).
//  3. The history of a key is legal. Nothing is Updated or Deleted that was not Added or Listed before, two deletions
//     never follow each other, and an object of another UID is always the deletion of the old one, its final state
//     unknown, and an addition, from a watch and from a list alike (TestLegalHistory, TestRecreated,
//     TestDeleteOfUnknown).
//  4. Replace deletes first what the list does not have, ordered by key, and then follows the list (TestReplaceOrder).
//  5. A list costs what changed: an object whose UID and version are known makes no delta and keeps its old pointer,
//     and a list without a change allocates nothing (TestReuse, TestReplaceOfKnownAllocatesNothing). With NoReuse, and
//     with Overwrite, every object is passed on (TestNoReuse, TestOverwrite).
//  6. The version of a batch is that of the last change in it, neither more nor less; a bookmark is a batch without
//     deltas (TestVersions).
//  7. The batch that completes the first list says so, once, be the list empty or not, and Synced is closed when it has
//     been processed (TestInitialList, TestSyncedWithEmptyList).
//  8. A resync is one flag of a batch, however often it was asked for (TestResync).
//  9. No object is held that is neither known nor on its way, and a huge batch does not make later ones slow
//     (TestNothingPinned, TestHugeBatchLeavesNoTrace).
//
// # Concurrency
//
// One goroutine produces (Put, Delete, DeleteKey, Bookmark, Replace, Overwrite, Get, Lookup, KnownLen), one consumes
// (Pop). Resync and Synced may be called from anywhere. Only Pop blocks, and it ends with its context
// (TestPopEndsWithItsContext). One mutex guards what is pending; it is not held while a batch is processed, so the
// producer goes on, and the callback may call whatever it likes but Pop (TestProducerGoesOnWhileProcessing).
//
// # Differences from client-go
//
// client-go 0.37 keeps an ordered log of events (RealFIFO) and hands it over in slices of at most 1000; here changes
// accumulate per object, as in its older DeltaFIFO, and a Pop takes the whole queue. Readers cannot tell, because the
// informer publishes a batch whole. There is no KnownObjects to consult, no Sync or SyncAll delta, no key function that
// could fail, no requeue: process cannot fail. A tombstone is a flag of the Deleted delta, not a type of its own.
//
// # Example
//
// See [DeltaFIFO.Pop] and the package example.
package deltafifo
