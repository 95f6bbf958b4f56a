// Package hooks has sets of functions that are called when something happens. Metrics use them: a function may be added
// and removed while the source runs.
//
// # Promises
//
//  1. A function is called for every event after its Add, and for no event that begins after its removal.
//  2. An empty set costs one atomic load: no lock and no memory.
//
// # Concurrency
//
// All methods may be called concurrently. Tell takes no lock, so a function may add and remove functions, also itself.
// Removing a function does not wait for a call that is in flight.
package hooks
