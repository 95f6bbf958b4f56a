// Package hooks has sets of functions that are told of something, for as long as they want to be.
//
// # Place in the pipeline
//
// Beside it: where a stage tells what it has done to metrics that may come and go while it runs.
//
// # Guarantees
//
//  1. Who is added is told of everything from then on, and who has left of nothing that begins later
//     (TestWhoIsAddedIsTold).
//  2. A set in which nobody is costs an atomic load: no lock and no memory (TestAnEmptySetCostsNothing).
//
// # Concurrency
//
// All methods may be called at once. Telling takes no lock, so that a function may add and remove, also itself; one that
// is being called while it is removed is not waited for.
//
// # Differences from client-go
//
// There is nothing like it there: its metrics are registered once for the whole process.
package hooks
