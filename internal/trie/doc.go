// Package trie is a persistent ordered trie with 64-bit hashes as keys: old versions do not change, and new versions
// share most of their memory with them. Package cache stores objects, index values and the members of each value in
// tries. This package knows nothing of Kubernetes, of keys, or of locks.
//
// # Promises
//
//  1. A Tree never changes, whatever is edited later.
//  2. An Edit writes only to nodes that it made, and copies O(log n) other nodes.
//  3. Entries are in ascending order of hash; entries with equal hashes keep their order. The order depends on nothing
//     else.
//  4. Any number of entries may have the same hash. Hashes with a long common prefix make the trie deeper, up to a
//     limit, but not wrong.
//  5. Memory follows the number of entries, also when it falls.
//
// # Concurrency
//
// A Tree is immutable and may be read on any goroutine. An Edit belongs to one goroutine.
package trie
