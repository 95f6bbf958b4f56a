// Package cache stores the objects of one collection. Readers see whole versions of it, never wait for the writer, and
// never make the writer wait. An informer applies each batch of changes here, in one transaction; handlers and
// reconcilers read.
//
//	DeltaFIFO ──batch──▶ Txn ──Commit──▶ Snapshot ◀── Reader, Index
//
// # Example
//
//	indexer := cache.New[*corev1.Pod]()
//	byNamespace := cache.AddIndex(indexer, cache.ByNamespace[*corev1.Pod])
//	txn := indexer.Begin()
//	txn.Set(pod)
//	txn.Commit("100") // readers see all changes of the transaction, or none
//	pods := byNamespace.ByIndex("default")
//
// See ExampleIndexer, ExampleAddIndex and ExampleMutationDetector.
//
// # Promises
//
//  1. Readers see nothing of a transaction before Commit, and all of it afterwards: objects, resource version and
//     indexes.
//  2. A Snapshot never changes, and Abort leaves no trace.
//  3. The cost of a commit depends on the number of changes, not on the number of objects.
//  4. The order of All depends only on the keys.
//  5. After every commit, an index agrees with its function. A panic of the function removes one object from that index
//     and has no other effect.
//  6. Look-ups and loops over a snapshot do not allocate, except in a View.
//  7. The objects must not be changed; the mutation detector names an object that was changed, and the field.
//
// # Concurrency
//
// All reading methods may be called on any goroutine. They take no lock; a snapshot costs one atomic load. Begin blocks
// until no other transaction is open, and AddIndex uses the same mutex while it fills the index. Index functions run on
// the writer's goroutine under that mutex, so they must not use the Indexer. This package starts no goroutine.
//
// # Differences from client-go
//
// The store of client-go is a map behind a read-write lock. There, readers delay the writer, a list is copied under the
// lock, and readers can see a half-finished relist. Indexes have names and string values, and an error of an index
// function panics with the lock held. In leat, objects are found by api.Key, an index is a typed value, and a reader
// can ask one Snapshot several questions.
package cache
