// Package goal parses the goals of leat wait: conditions of package await, and fields that a JSONPath selects.
//
// # Promises
//
//  1. A path selects what RFC 9535 says, also in kubectl's notation.
//
// # Concurrency
//
// Goals do not change, and may be used on any goroutine.
package goal
