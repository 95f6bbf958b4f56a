// Package hashrange has ranges of 64-bit hashes, and the hash that decides in which range an object is. The API server
// uses the same hash and the same ranges in its shardSelector (KEP-5866), so a client and the server agree about each
// object. Package shard divides the ranges among replicas.
//
// # Example
//
//	half := hashrange.NewSet(hashrange.Range{To: 1 << 63})
//	half.Contains(hashrange.Hash(string(pod.GetUID())))
//	half.Selector(hashrange.UID) // shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
//
// See Example.
//
// # Promises
//
//  1. Hash, and the text of a selector, are those of the API server.
//  2. A Set has one form: equal sets have equal ranges and equal texts.
//  3. ParseSelector accepts only what the API server accepts, with the same ranges, and it accepts what Selector
//     returns. It refuses oddities that the API server accepts: shardRange as a method, invalid UTF-8 in comments, and
//     more than 32 parentheses inside each other.
//
// # Concurrency
//
// Sets and ranges are values. No function changes its arguments.
package hashrange
