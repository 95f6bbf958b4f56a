// Package plan has what the decoding plans of all formats share: strings that repeat, parts that objects share, memory
// that is used again, errors that name a field, and limits. A plan is compiled once from a Go type and decodes objects
// into values of it; jsonplan and wireplan are the plans of JSON and protobuf.
//
// # Promises
//
//  1. An Interner keeps only repeated strings of up to 256 bytes, at most 4096 or 16384, and the most frequent ones
//     first.
//  2. Parts keep no value alive, at most 262,144 of them, and a user who writes objects cannot make two different texts
//     count as equal.
//  3. An error names fields of the type, indices and types. It quotes nothing of the object and has about half a
//     kilobyte at most.
//
// # Concurrency
//
// An Interner is safe for concurrent use and needs no lock. So is Parts, which has a lock for each shard. A Scratch
// belongs to one goroutine.
package plan
