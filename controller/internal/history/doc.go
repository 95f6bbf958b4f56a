// Package history remembers the last reconciles of a controller's keys.
//
// # Promises
//
//  1. A history has the last four reconciles of the keys that were reconciled last. Find returns them, newest first.
//  2. Its memory is bounded by the number of keys. It is used again, and keeps no string of a forgotten key alive.
//
// # Concurrency
//
// All methods may be called on any goroutine. They hold one lock for a look-up or a copy.
package history
