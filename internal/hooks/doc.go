// Package hooks has sets of functions that are called when something happens. Traces use them: a hook may be added and
// removed while the source runs.
//
// # Promises
//
//  1. All returns every hook after its Add, and not after its removal.
//  2. An empty set costs one atomic load: no lock and no memory.
//
// # Concurrency
//
// All methods may be called concurrently. All takes no lock, so a hook may add and remove hooks, also itself. Removing
// a hook does not wait for a call that is in flight.
package hooks
