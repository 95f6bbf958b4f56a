// Package trie is a persistent ordered trie over 64-bit hashes: old versions stay whole while new ones share most of
// their memory with them.
//
// # Place in the pipeline
//
// Under package cache, which keeps its objects, its index values and the members of each value in tries. It knows
// nothing of Kubernetes, of keys, or of locks.
//
// # Guarantees
//
//  1. A Tree never changes, whatever is edited later (TestTreesStayAsTheyWere).
//  2. An Edit writes only to nodes that it made itself (TestEditLeavesNoTrace), and copies O(log n) others
//     (TestOneEditCopiesOnePath).
//  3. Entries come in ascending order of hash, and those of equal hash in the order in which they were placed
//     (TestAgainstSlice). The order depends on nothing else.
//  4. Any number of entries may share a hash (TestEqualHashes), and hashes that share a long prefix cost depth, which is
//     bounded, and not correctness (TestLongPrefixes).
//  5. Memory follows the number of entries, also downwards (TestRemovalGivesBack).
//
// # Concurrency
//
// A Tree is immutable and may be read from anywhere. An Edit belongs to one goroutine.
//
// # Differences from client-go
//
// client-go has no such thing: its store is a map behind a lock, and so is every index.
package trie
