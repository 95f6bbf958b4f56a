// Package scan reads a stream and finds the JSON values in it.
//
// A Window (window.go) holds the current part of the stream, up to the limit of one object. A Scanner (scanner.go)
// finds the end of a value, checks the syntax of every byte, also in skipped values, and records its tokens in an
// Outline (outline.go). A Cursor walks over the tokens. Later steps can rely on valid JSON, and skip a value in one
// step.
//
// # Promises
//
//  1. JSON is accepted and rejected as by sigs.k8s.io/json.
//  2. A window grows only with bytes that have arrived, up to its limit. Tokens take at most twice the limit.
//  3. Malformed input is an error and causes no panic.
//
// # Concurrency
//
// All values belong to one goroutine. Reading blocks as the reader of the Window blocks.
package scan
