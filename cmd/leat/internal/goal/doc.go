// Package goal parses the goals of leat wait: conditions of package await, and fields that a JSONPath selects.
//
// # Promises
//
//  1. A path follows RFC 9535, and kubectl's notation works too.
//
// # Concurrency
//
// Goals do not change, and may be used on any goroutine.
package goal
