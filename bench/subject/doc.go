// Package subject is the part of a measured process that is the same for every library: it does the work that the runner
// asks for with whatever Library it is given, and reports what that has used.
//
// # Place in the pipeline
//
// Around it: cmd/leat, cmd/client-go and cmd/controller-runtime are this package with a library each, and package runner
// starts them. It knows none of them.
//
// # Guarantees
//
//  1. Every library is measured between the same two points by the same code (TestEveryWork).
//  2. What is asked of a library that it cannot do is an error, never a figure (TestUnknownWork).
//
// # Concurrency
//
// A process does one work and ends. Main blocks until then.
//
// # Differences from client-go
//
// client-go has nothing like it.
package subject
