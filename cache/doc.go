// Package cache holds the objects of a collection so that readers see whole versions of it, never wait for the writer,
// and never make it wait.
//
// # Place in the pipeline
//
// After deltafifo, whose batches an informer applies here, each in one transaction; before everybody who reads: handlers,
// reconcilers, listers.
//
//	DeltaFIFO ──batch──▶ Txn ──Commit──▶ Snapshot ◀── Reader, Index, Lister
//
// # Guarantees
//
//  1. Nothing of a transaction shows before Commit, and then all of it at once: objects, resource version and indexes
//     (TestNothingShowsBeforeCommit, TestReadersSeeWholeVersions).
//  2. A Snapshot never changes (TestSnapshotsStay), and Abort leaves no trace (TestAgainstMap).
//  3. What a commit costs depends on what changed and hardly on what there is: one changed object among 200,000
//     allocates less than 2 KB, or 4 KB if it changes its value in an index (TestBytesOfOneChange).
//  4. The order of All depends on the keys alone (TestOrderDependsOnKeysAlone), and keys whose hashes collide are as good
//     as others (TestCollidingKeys).
//  5. An index is what its function says about the objects, after every commit (TestAgainstMap), and is not touched when
//     the values of an object stay (TestIndexIsLeftAlone).
//  6. An index function that panics costs its object the place in that one index, and nothing else
//     (TestPanicOfIndexFunc).
//  7. Objects, keys and one index take less than 60 bytes an object (TestBytesOfAnObject).
//  8. Look-ups and loops over a snapshot do not allocate (TestReadingDoesNotAllocate).
//  9. The mutation detector names the object that was changed and what was changed in it, for as long as anybody could
//     see it, and keeps nothing of objects that are gone (TestMutationDetector, TestDetectorForgetsTheDead).
//
// # Concurrency
//
// Reading takes one atomic load and no lock, on any goroutine. Writers queue at Begin for one mutex, which Commit or
// Abort releases; AddIndex takes the same mutex while it fills the index. Index functions run on the writer's goroutine
// under that mutex, so they must not use the Indexer. Nothing here starts a goroutine.
//
// # Differences from client-go
//
// The store there is a map behind a read-write lock: readers hold up the writer, a list is a copy under the lock, and a
// relist shows half done. Indexes there have names and string values, errors of their functions panic with the lock
// held, and an update takes out all the values of an object and puts all the new ones in. Here objects are found by
// api.Key, indexes by their own type, and several questions can be asked of the same Snapshot.
//
// # Example
//
// See ExampleIndexer, ExampleAddIndex, ExampleLister and ExampleMutationDetector.
package cache
