// Package typed converts between trees and the internal types of Kubernetes, which its plugins and storages use.
//
//	pod, err := typed.Internal(tree) // which has apiVersion and kind
//
// # Promises
//
//  1. A tree that was converted to its internal type and back has the same content.
//  2. A value that a step of a write left is used once, with the metadata of the tree.
//  3. Members encode to the JSON of their trees, have the same shape, and answer field selectors in the same way.
//  4. Decode returns the value that the strict decoder of Kubernetes returns, or leaves the body to that decoder.
//
// # Concurrency
//
// All functions may be called from any goroutine.
package typed
