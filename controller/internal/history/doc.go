// Package history remembers the last reconciles of a controller's keys.
//
// # Promises
//
//  1. A history has the last four reconciles of the keys that were reconciled last. Find returns them, newest first.
//  2. Its memory is bounded by the number of keys. A new key uses the room of a forgotten one, and no string of the
//     forgotten key stays.
//
// # Concurrency
//
// All methods may be called on any goroutine. They hold one lock for a look-up or a copy.
package history
