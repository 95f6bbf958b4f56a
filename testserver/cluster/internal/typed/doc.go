// Package typed converts between trees and the internal types of Kubernetes, which its plugins and storages use.
//
//	pod, err := typed.Internal(tree) // which has apiVersion and kind
//
// # Promises
//
//  1. A tree that was converted to its internal type and back has the same content.
//  2. A value that a step of a write left is used once, with the metadata of the tree.
//
// # Concurrency
//
// All functions may be called from any goroutine.
package typed
