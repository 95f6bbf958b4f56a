// Package redact replaces values in lists and watches in JSON, and in selectors, by keyed hashes. Package recording
// says which values, and why.
//
// Read paths.go for the trees of paths, filter.go for the copy of an answer, and selectors.go for requests.
//
// # Example
//
//	paths, err := redact.Compile([]redact.Path{{Resource: "configmaps", Path: "data"}})
//	filter := redact.NewFilter(paths.Of("configmaps"), hmac.New(sha256.New, key))
//	hidden, err := filter.Copy(piece) // of the answer
//
// # Promises
//
//  1. What a Filter returns does not depend on the pieces in which it gets an answer.
//  2. A Filter accepts only the form of a list or of a watch; the error has nothing of the answer.
//
// # Concurrency
//
// Paths are safe for concurrent use. A Filter belongs to one goroutine.
package redact
