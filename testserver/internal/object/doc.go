// Package object reads and changes objects as parsed JSON. The server keeps no Go types of Kubernetes, so that it
// serves every resource in the same way.
//
//	tree, err := object.Decode(body)
//	name := object.StringAt(object.Metadata(tree), "name")
//
// # Promises
//
//  1. A missing member, or one of another type, reads as the zero value. No function panics.
//  2. Integers keep all their digits: Decode makes them int64.
//
// # Concurrency
//
// The functions have no state. A tree belongs to one goroutine at a time.
package object
