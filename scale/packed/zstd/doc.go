// Package zstd compresses packed objects with zstd and a dictionary. A whole Pod takes about a tenth of the memory of
// the decoded struct then. It is in a module of its own, so that other programs do not require the library.
//
// # Example
//
//	hold := packed.Coded[*corev1.Pod](zstd.Train)
//	pods := informer.New(client, informer.Options[*corev1.Pod]{Hold: hold})
//
// Train makes a dictionary of the first objects of the first list; package packed says when it is called again.
//
// # Promises
//
//  1. What was compressed is decompressed to the same bytes.
//  2. Malformed bytes are an error.
//  3. Samples that have too little in common for a dictionary are an error and not a panic.
//
// # Concurrency
//
// The function that compresses is for one goroutine at a time. The one that decompresses is safe for concurrent use.
package zstd
